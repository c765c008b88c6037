// Every public header compiles as C++ and links with C names.
#include <cairn/cairn.h>

#include <cstdio>

int main()
{
    cn_ctx *cn = cn_open(nullptr);
    bool opened = cn != nullptr;
    if (!opened) std::puts("cn_open(nullptr) gave no context");
    cn_close(cn);
    std::printf("%d passed, %d failed\n", opened, !opened);
    return opened ? 0 : 1;
}
