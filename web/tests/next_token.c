/* next_token FILE PROMPT: the probabilities of the token that follows the prompt, one a line, as a native program
   computes them. web/tests/rooms.mjs compares them with the page's. */
#include <cairn/cairn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    cn_ctx *cn = cn_open(NULL);
    cn_dict *file = cn_load(cn, argv[1]);
    const char *json = file ? cn_dict_text(file, "tokenizer.json") : NULL;
    cn_tokenizer *t = json ? cn_tokenizer_parse(cn, json, strlen(json)) : NULL;
    cn_module *gpt = t ? cn_gpt_from(cn, file, NULL) : NULL;
    cn_sampler *s = gpt ? cn_sampler_new(gpt, NULL) : NULL;
    int32_t ids[256];
    const int64_t n = t ? cn_encode(t, argv[2], strlen(argv[2]), ids, 256) : 0;
    const float *logits = s && n > 0 && cn_sampler_feed(s, ids, n < 256 ? n : 256) ? cn_sampler_logits(s) : NULL;
    const int64_t vocab = logits ? cn_gpt_config(gpt)->vocab : 0;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < vocab; i++) most = fmax(most, (double)logits[i]);
    for (int64_t i = 0; i < vocab; i++) sum += exp((double)logits[i] - most);
    for (int64_t i = 0; i < vocab; i++) printf("%.9f\n", exp((double)logits[i] - most) / sum);
    if (cn_failed(cn)) fprintf(stderr, "%s\n", cn_error(cn));
    cn_close(cn);
    return !logits;
}
