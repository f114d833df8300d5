/* Calls of fuzz_round.h: streams, events, graphs, settings, others' memory, plans, lessons. */
#ifndef PVG_FUZZ_CARD_H
#define PVG_FUZZ_CARD_H

#include "fuzz_late.h"

static void use_stream(void) {
    pvg_stream *s = NULL;
    int kind = (int)pick(0, 6);
    TRACE("stream %d\n", kind);
    if (kind <= 1 && streams.count < OTHERS) {
        s = kind == 0 ? pvg_stream_create(device()) : pvg_stream_wrap(NULL, 0);
        handle_of("pvg_stream_create", s, NULL, &streams);
    }
    if (kind == 2) {
        pvg_stream *variable = s = wanted(&streams, 100);
        if (released("pvg_stream_release",
                     chance(50) ? pvg_stream_release(s) : pvg_stream_drop(&variable)))
            forget(&streams, s);
    }
    if (kind == 3) status_of("pvg_stream_synchronize", pvg_stream_synchronize(needed(&streams)));
    if (kind == 4 || kind == 5) {
        s = wanted(&streams, 70);
        status_of("pvg_stream_set_current", pvg_stream_set_current(s, 0));
    }
    if (kind == 6) {
        s = needed(&streams);
        pvg_event *e = needed(&events);
        status_of("pvg_stream_wait_event", pvg_stream_wait_event(s, e));
    }
    CHECK(pvg_stream_current(0) != NULL);
}

static void use_event(void) {
    pvg_event *e = NULL;
    double milliseconds = 0;
    int kind = (int)pick(0, 5), done = -1;
    TRACE("event %d\n", kind);
    if (kind == 0 && events.count < OTHERS)
        handle_of("pvg_event_create", pvg_event_create(device()), NULL, &events);
    if (kind == 1) {
        pvg_event *variable = e = wanted(&events, 100);
        if (released("pvg_event_release",
                     chance(50) ? pvg_event_release(e) : pvg_event_drop(&variable)))
            forget(&events, e);
    }
    if (kind == 2) {
        e = needed(&events);
        status_of("pvg_event_record", pvg_event_record(e, needed(&streams)));
    }
    if (kind == 3) status_of("pvg_event_synchronize", pvg_event_synchronize(needed(&events)));
    if (kind == 4) status_of("pvg_event_query", pvg_event_query(needed(&events), &done));
    if (kind == 5) {
        fault = 1; /* one that was not recorded, or is not over yet, is the runtime's error */
        e = needed(&events);
        int status = pvg_event_elapsed(e, needed(&events), &milliseconds);
        status_of("pvg_event_elapsed", status);
    }
}

static void use_graph(void) {
    int kind = (int)pick(0, 3);
    TRACE("graph %d\n", kind);
    if (kind == 0) {
        const int status = pvg_graph_begin(device());
        status_of("pvg_graph_begin", status);
        recording |= status == PVG_OK;
    }
    if (kind == 1 && graphs.count < OTHERS) {
        const int on = device();
        fault = 1; /* tells what failed while it was recorded */
        pvg_graph *g = pvg_graph_end(on);
        handle_of("pvg_graph_end", g, NULL, &graphs);
        if (on == 0 && recording) recording = 0, late_graph_ended(g);
    }
    if (kind == 2) {
        pvg_graph *g = needed(&graphs);
        if (!recording) late_graph_launched(g);
        status_of("pvg_graph_launch", pvg_graph_launch(g));
    }
    if (kind == 3) {
        pvg_graph *g = wanted(&graphs, 100), *variable = g;
        if (released("pvg_graph_release",
                     chance(50) ? pvg_graph_release(g) : pvg_graph_drop(&variable)))
            late_graph_released(g), forget(&graphs, g);
    }
}

static void synchronize(int on) {
    const int status = pvg_synchronize(on);
    status_of("pvg_synchronize", status);
    if (on == 0 && !recording) nothing_is_due(status);
}

static void use_settings(void) {
    static const int options[] = {PVG_OPTION_SYNC,          PVG_OPTION_LAUNCH_LOG,
                                  PVG_OPTION_DEFAULT_FLOAT, PVG_OPTION_MATMUL_PRECISION,
                                  PVG_OPTION_MATMUL_KERNEL, PVG_OPTION_ALLOCATOR};
    int64_t values[PVG_MEMORY_COUNT], value = 0;
    int kind = (int)pick(0, 6), option = options[pick(0, COUNT(options) - 1)];
    TRACE("settings %d\n", kind);
    if (kind == 0) status_of("pvg_set_option", pvg_set_option(option, pick(-1, 14)));
    if (kind == 1) status_of("pvg_get_option", pvg_get_option((int)pick(-1, 7), &value));
    if (kind == 2) status_of("pvg_memory_info", pvg_memory_info(device(), values));
    if (kind == 3)
        status_of("pvg_set_memory_limit",
                  pvg_set_memory_limit(0, chance(50) ? 0 : pick(-9, (int64_t)1 << 24)));
    if (kind == 4) status_of("pvg_empty_cache", pvg_empty_cache(device()));
    if (kind == 5) synchronize(device());
    if (kind == 6)
        status_of("pvg_device_attribute",
                  pvg_device_attribute(device(), (int)pick(-2, 50), &value));
}

static void plan(void) {
    int64_t card[PVG_CARD_COUNT], wish[PVG_PRODUCT_COUNT], found[PVG_PLAN_COUNT];
    status_of("pvg_plan_card", pvg_plan_card(0, card));
    for (int i = 0; i < PVG_PRODUCT_COUNT; i++) wish[i] = pick(0, chance(80) ? 40 : 5000);
    wish[PVG_PRODUCT_DTYPE] = dtype(), wish[PVG_PRODUCT_KERNEL] = chance(80) ? 0 : pick(-1, 14);
    wish[PVG_PRODUCT_PRECISION] = precision();
    wish[PVG_PRODUCT_A_ALONG_K] = pick(0, 1), wish[PVG_PRODUCT_B_ALONG_K] = pick(0, 1);
    if (chance(50)) card[PVG_CARD_ARCHITECTURE] = chance(80) ? 90 : pick(-5, 130);
    TRACE("pvg_plan_product\n");
    status_of("pvg_plan_product", pvg_plan_product(card, wish, found));
}

static void lesson(void) {
    int64_t grid[3], block[3], occupancy = 0;
    double milliseconds = 0;
    pvg_array *operands[3], *out = needed(&arrays);
    for (int i = 0; i < 3; i++) {
        grid[i] = chance(97) ? pick(1, 3) : pick(-1, 70000);
        block[i] = chance(97) ? pick(1, 8) : pick(-1, 2000);
        operands[i] = wanted(&arrays, 70);
    }
    if (grid[0] * grid[1] * grid[2] > 100 && block[0] * block[1] * block[2] <= 1024) return;
    TRACE("pvg_learn\n");
    bad = 0;   /* which operands a kernel takes is its own business, */
    fault = 1; /* and so is a launch beyond what the device can do */
    status_of("pvg_learn", pvg_learn((int)pick(-1, 10), grid, block, operands[0], operands[1],
                                     operands[2], out, pick(0, 2), &milliseconds, &occupancy));
}

static void synchronize_it(void) {
    TRACE("pvg_synchronize\n");
    synchronize(0);
}

/* Memory of this library that goes out and comes back, and streams of others. */
static void share(void) {
    typedef struct managed {
        struct {
            void *data;
            int32_t device_type, device_id, ndim;
            uint8_t code, bits;
            uint16_t lanes;
            int64_t *shape, *strides;
            uint64_t byte_offset;
        } tensor;
        void *context;
        void (*deleter)(struct managed *);
    } managed;
    pvg_array *a = needed(&arrays);
    const int kind = (int)pick(0, 3), on = device();
    int found = -2;
    TRACE("share %d, %p\n", kind, (void *)a);
    if (kind == 0) {
        managed *tensor = pvg_dlpack_export(a, 0, 0, 0);
        status_of("pvg_dlpack_export", tensor ? PVG_OK : pvg_last_status());
        if (!tensor) return;
        if (pvg_array_size(a) > 0) CHECK(tensor->tensor.data == pvg_array_data(a));
        pvg_array *back = pvg_dlpack_import(tensor, 0, on);
        if (!handle_of("pvg_dlpack_import", back, NULL, &arrays)) tensor->deleter(tensor);
    }
    if (kind == 1) status_of("pvg_array_lend", pvg_array_lend(a, NULL));
    if (kind == 2) bad = 0, status_of("pvg_stream_follow", pvg_stream_follow(NULL, on));
    if (kind == 3) {
        void *data = pvg_array_data(a);
        const int on_host = chance(20);
        bad = 0;
        const int status = pvg_memory_device(on_host ? buffer : data, &found);
        status_of("pvg_memory_device", status);
        if (status == PVG_OK) CHECK(found == -1 || (found == 0 && !on_host));
    }
}

/* What only tells something, and takes any number. */
static void ask_names(void) {
    const int code = (int)pick(-3, 400), other = (int)pick(-3, 20);
    TRACE("names of %d, %d\n", code, other);
    CHECK(pvg_supports(code, other) == 0 || pvg_supports(code, other) == 1);
    const int both = pvg_promote(other, (int)pick(-3, 20));
    CHECK(both >= -1 && both <= PVG_COMPLEX128);
    CHECK(pvg_dtype_name(other)[0] != '\0' && pvg_dtype_size(other) >= 0);
    CHECK(pvg_launch_log() != NULL && pvg_build_info() != NULL && pvg_operations() != NULL);
    CHECK(pvg_plan_rule(code) == NULL || strchr(pvg_plan_rule(code), '|') != NULL);
    CHECK(pvg_device_name(0) != NULL && pvg_abi_version() == PVG_ABI_VERSION);
    (void)pvg_stream_handle(pvg_stream_current(0)); /* that of CUDA's default stream is NULL */
    CHECK_EQUAL(pvg_last_status(), PVG_OK);
    CHECK(pvg_last_error_value((int)pick(-3, 9)) >= -1);
}

#endif
