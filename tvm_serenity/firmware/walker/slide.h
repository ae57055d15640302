/* Take one of the last rows of the window; with the last row of a step, run the step.
   $N: steps run, at most FILL. $T: rows of the next step taken so far. */
static int32_t feed($Fconst uint8_t *row, uint32_t height)
{
    if ($T == 0u) {
$I$M    }
    (void)memcpy(row_at($AFED, height - STEP + $T), row, features[FED].row_bytes);
    ++$T;
    if ($T == STEP) {
        $T = 0;
        (void)walk($A0);
$S        if ($N < FILL) {
            ++$N;
        }
        if ($N == FILL) {
            return 0;
        }
    }
    const uint32_t steps = $N == FILL ? 1u : FILL - $N;
    return (int32_t)(steps * STEP - $T);
}
