/* $N: the entry that waits for a row. $T: rows taken so far. */
static int32_t feed($Fconst uint8_t *row, uint32_t height)
{
    const uint32_t entry = $T == 0u ? walk($A0) : $N;
    const uint32_t layer = sequence[entry][0];
    uint32_t together = features[FED].together;
    if (layer == LAYERS) {
        uint8_t *const to = row_at($AFED, $T);
        (void)memcpy(to, row, features[FED].row_bytes);
        TRACE(FED, to, features[FED].row_bytes);
    } else {
        make_rows($A&layers[layer], $T, 1, row);
        together = layers[layer].together;
    }
    ++$T;
    $N = entry;
    if ($T % together == 0u || $T == height) {
        $N = walk($Aentry + 1u);
    }
    const uint32_t left = height - $T;
    if (left == 0u) {
        $T = 0;
    }
    return (int32_t)left;
}
