// Every public header compiles as C++ and links with C names. Lists are counted by the compiler there too.
#include <cairn/cairn.h>

#include <cstdio>

static bool lists_are_counted(cn_ctx *cn)
{
    cn_tensor *x = cn_ones(cn, CN_F32, CN_DIMS(1, 2));
    cn_module *net = cn_nn_sequential(cn, cn_nn_linear(cn, 4, 3, nullptr), cn_nn_relu(cn));
    cn_tensor *y = cn_forward(net, cn_cat(CN_TENSORS(x, x), 1));
    cn_dataset *parts[2], *d = cn_dataset_tensors(CN_TENSORS(x, x));
    cn_dataset_split(d, CN_LIST(double, 1, 0), 1, parts);
    return cn_module_children(net) == 2 && cn_shape(y).v[1] == 3 && cn_dataset_count(parts[0]) == 1 && !cn_failed(cn);
}

int main()
{
    cn_ctx *cn = cn_open(nullptr);
    bool opened = cn != nullptr, counted = opened && lists_are_counted(cn);
    if (!opened) std::puts("cn_open(nullptr) gave no context");
    if (opened && !counted) std::printf("lists in C++: %s\n", cn_error(cn));
    cn_close(cn);
    std::printf("%d passed, %d failed\n", opened + counted, 2 - opened - counted);
    return counted ? 0 : 1;
}
