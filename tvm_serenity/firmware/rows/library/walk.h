static uint8_t *row_at(uint32_t feature, uint32_t row)
{
    const row_feature *const f = &features[feature];
    const uint32_t band = row / f->together;
    return ARENA + offsets[f->first + band] + (row - band * f->together) * f->row_bytes;
}

/* Make row y of a layer; `fed`: the row that has arrived, where the layer reads that. */
static void make_row(const row_layer *layer, uint32_t y, const uint8_t *fed)
{
    const uint8_t *rows[MOST_SLOTS];
    for (uint32_t i = 0; i < layer->slots; ++i) {
        const row_slot *const slot = &slots[layer->slot + i];
        int32_t row = (int32_t)y * slot->step + slot->first;
        if (slot->divisor > 1u && row >= 0) {
            row /= slot->divisor;
        }
        if (fed != NULL) {
            rows[i] = fed;
        } else if ((uint32_t)row < features[slot->feature].height) {
            rows[i] = row_at(slot->feature, (uint32_t)row);
        } else {
            rows[i] = layer->outside;
        }
    }
    uint8_t *const out = row_at(layer->out, layer->kind == MAKES_ROWS ? y : 0u);
    layer->run(rows, out, y);
    if (layer->kind == MAKES_ROWS) {
        TRACE(layer->out, out, features[layer->out].row_bytes);
    } else if (layer->kind == MAKES_ALL) {
        TRACE(layer->out, out, features[layer->out].row_bytes * features[layer->out].height);
    }
}

static void make_band(const row_layer *layer, uint32_t band)
{
    const uint32_t first = band * layer->together;
    uint32_t end = first + layer->together;
    if (end > layer->height) {
        end = layer->height;
    }
    for (uint32_t y = first; y < end; ++y) {
        make_row(layer, y, NULL);
    }
}

/* Follow the sequence from an entry to the next one that takes in rows, or to the end. */
static uint32_t walk(uint32_t entry)
{
    for (; entry < ENTRIES; ++entry) {
        const uint32_t layer = sequence[entry][0];
        if (layer == LAYERS || layers[layer].feeds != 0u) {
            break;
        }
        make_band(&layers[layer], sequence[entry][1]);
    }
    return entry;
}
