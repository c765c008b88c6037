/* search_body.h: the place of value i in its sequence, which begins at `row`, for elements of type T; included by
   search.c through cpu/each_type.h. NaN comes after all numbers. */
static int64_t NAME(place)(const job *j, int64_t row, int64_t i)
{
    const T *x = j->sequence, v = ((const T *)j->values)[i];
    int64_t low = 0, high = j->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const T m = x[row + middle];
        if (j->right ? m > v : m >= v) high = middle;
        else low = middle + 1;
    }
    return low;
}
