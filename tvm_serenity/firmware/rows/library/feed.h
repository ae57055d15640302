static uint32_t at;    /* the entry that waits for a row */
static uint32_t taken; /* rows taken in so far */

static int32_t feed(const uint8_t *row, uint32_t height)
{
    const uint32_t entry = taken == 0u ? walk(0) : at;
    const uint32_t layer = sequence[entry][0];
    uint32_t together = features[FED].together;
    if (layer == LAYERS) {
        uint8_t *const to = row_at(FED, taken);
        (void)memcpy(to, row, features[FED].row_bytes);
        TRACE(FED, to, features[FED].row_bytes);
    } else {
        make_rows(&layers[layer], taken, 1, row);
        together = layers[layer].together;
    }
    ++taken;
    at = entry;
    if (taken % together == 0u || taken == height) {
        at = walk(entry + 1u);
    }
    const uint32_t left = height - taken;
    if (left == 0u) {
        taken = 0;
    }
    return (int32_t)left;
}
