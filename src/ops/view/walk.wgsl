// Functions that compute offsets of elements in memory. `first` is the index of their first parameter.
//! hole name = any
//! hole first = any
//! hole axes = any

//! part walk
// The offset of element i in row-major order. Parameters: size and stride of each axis but the first, the last axis
// first; then the stride of the first axis.
fn {{name}}(i: u32) -> u32 {
    var t = i; var o = 0u;
//! repeat d axes
    o += (t % par({{first}}u + 2u * {{d}}u)) * par({{first}}u + 2u * {{d}}u + 1u); t /= par({{first}}u + 2u * {{d}}u);
//! end
    return o + t * par({{first}}u + 2u * {{axes}}u);
}

//! part same
// The same for contiguous memory.
fn {{name}}(i: u32) -> u32 { return i; }

//! part sides
// The offsets in x and in the source, over the axes on one side of an axis. Parameters: size and both strides of each
// axis, the last axis first.
fn {{name}}(at: u32) -> vec2<u32> {
    var t = at; var v = vec2<u32>(0u);
//! repeat d axes
    v += (t % par({{first}}u + 3u * {{d}}u)) *
         vec2<u32>(par({{first}}u + 3u * {{d}}u + 1u), par({{first}}u + 3u * {{d}}u + 2u));
    t /= par({{first}}u + 3u * {{d}}u);
//! end
    return v;
}
