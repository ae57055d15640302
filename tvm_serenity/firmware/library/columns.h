/* Copies of $X inputs into columns: copying and filling return where they end. */
INLINED $X_t *copy_$X($X_t *to, const $X_t *from, int32_t count)
{
    for (; count >= 4; count -= 4) {
        (void)memcpy(to, from, 4);
        to += 4;
        from += 4;
    }
    for (; count > 0; --count) {
        *to++ = *from++;
    }
    return to;
}

INLINED $X_t *fill_$X($X_t *to, int32_t value, int32_t count)
{
    for (; count > 0; --count) {
        *to++ = ($X_t)value;
    }
    return to;
}
