// unfold_backward: each element is the sum over the windows that contain it. par(0): size of the axis; 1: elements
// after it; 2: windows; 3: size of a window; 4: step from window to window.

//! kernel unfold_backward
//! uses in0 out0 par
fn each(i: u32) {
    let inner = i % par(1u); let p = i / par(1u) % par(0u);
    let outer = i / par(1u) / par(0u);
    let size = par(3u); let step = par(4u); var w = 0u;
    if (p >= size) { w = (p - size) / step + 1u; }
    var sum = 0.0;
    for (; w <= p / step && w < par(2u); w++) {
        sum += in0(((outer * par(2u) + w) * par(1u) + inner) * size + p - w * step);
    }
    out0(i, sum);
}
