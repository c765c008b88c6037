/* A user's first program, built against an installed library. */
#include <cairn/cairn.h>
#include <stdio.h>

int main(void)
{
    cn_ctx *cn = cn_open(NULL);
    if (!cn) {
        puts("cn_open gave no context");
        return 1;
    }
    cn_close(cn);
    return 0;
}
