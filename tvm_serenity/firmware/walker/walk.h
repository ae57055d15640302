static uint8_t *row_at($Puint32_t feature, uint32_t row)
{
    const row_feature *const f = &features[feature];
    const uint32_t band = row / f->together;
    const uint32_t offset = OFFSET_UNIT * (uint32_t)offsets[f->first + band];
    return AT(offset) + (row - band * f->together) * f->row_bytes;
}

/* Compute row y of a layer, or `count` rows from y on if it computes contiguous rows.
   `fed`: the row that has arrived if the layer reads it, else NULL. */
static void make_rows($Pconst row_layer *layer, uint32_t y, uint32_t count, const uint8_t *fed)
{
    const uint8_t *rows[MOST_SLOTS];
    const uint8_t **to = rows;
    for (uint32_t i = 0; i < layer->slots; ++i) {
        const row_slot *const slot = &slots[layer->slot + i];
        int32_t row = (int32_t)y * slot->step + slot->first;
        if (slot->divisor > 1u && row >= 0) {
            row /= slot->divisor;
        }
#if defined(LISTED)
        if (slot->divisor == 0u) {
            row = (int32_t)listed[(uint32_t)slot->first + y];
        }
#endif
        for (uint32_t left = slot->count; left > 0u; --left) {
            if (fed != NULL) {
                *to++ = fed;
            } else if ((uint32_t)row < features[slot->feature].height) {
                *to++ = row_at($Aslot->feature, (uint32_t)row);
            } else {
                *to++ = layer->outside;
            }
            ++row;
        }
    }
    const bool by_row = layer->kind != MAKES_ALL;
    uint8_t *const out = by_row ? row_at($Alayer->out, y) : NULL;
    layer->run($Arows, out, layer->kind == MAKES_PIXELS ? count : y);
#if defined(SERENITY_TRACE)
    const uint32_t row_bytes = features[layer->out].row_bytes;
    for (uint32_t i = 0; by_row && i < count; ++i) {
        TRACE(layer->out, out + i * row_bytes, row_bytes);
    }
#endif
}

/* Return the number of rows from y on that are contiguous in the layer's inputs and output. */
static uint32_t following(const row_layer *layer, uint32_t y, uint32_t end)
{
    uint32_t count = end - y;
    for (uint32_t i = 0; i <= layer->slots; ++i) {
        const uint32_t feature = i == layer->slots ? layer->out : slots[layer->slot + i].feature;
        const uint32_t together = features[feature].together;
        const uint32_t left = together - y % together;
        count = left < count ? left : count;
    }
    return count;
}

static void make_band($Pconst row_layer *layer, uint32_t band)
{
    uint32_t y = band * layer->together;
    uint32_t end = y + layer->together;
    if (end > layer->height) {
        end = layer->height;
    }
    while (y < end) {
        const uint32_t count = layer->kind == MAKES_PIXELS ? following(layer, y, end) : 1u;
        make_rows($Alayer, y, count, NULL);
        y += count;
    }
}

/* Follow the sequence from an entry to the next entry that takes rows, or to the end. */
static uint32_t walk($Puint32_t entry)
{
    for (; entry < ENTRIES; ++entry) {
        const uint32_t layer = sequence[entry][0];
        if (layer == LAYERS || layer == FEEDING) {
            break;
        }
$C        make_band($A&layers[layer], sequence[entry][1]);
$D    }
    return entry;
}
