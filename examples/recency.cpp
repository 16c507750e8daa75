// recency.cpp - a plug-in with a state, in C++: baseline:recency from what it observes.
//
//     fullrank rank --data wikipedia --scorer plugin:./librecency.so -o ranks.npy
//
// No exception may leave a function that the library calls.
#include <algorithm>
#include <fullrank.h>
#include <memory>
#include <new>
#include <vector>

namespace {

class recency {
  public:
    explicit recency(const fr_window *window)
        : tail(static_cast<size_t>(fr_window_get(window).candidates), -1),
          own(static_cast<size_t>(fr_window_get(window).sources)) {}

    // The source's destinations in the order of their last meeting: this one moves to the end.
    void observe(const fr_event &event) {
        auto &list = own[static_cast<size_t>(event.source)];
        list.erase(std::remove(list.begin(), list.end(), event.destination), list.end());
        list.push_back(event.destination);
        tail[static_cast<size_t>(event.destination)] = static_cast<float>(event.event);
        seen = event.event + 1;
    }

    void score(const fr_query &query, float *scores) const {
        std::copy(tail.begin(), tail.end(), scores);
        int32_t place = seen; // more than any past event's number
        for (int32_t v : own[static_cast<size_t>(query.source)])
            scores[v] = static_cast<float>(place++);
    }

  private:
    int32_t seen = 0; // events so far
    std::vector<float> tail;
    std::vector<std::vector<int32_t>> own;
};

fr_status score(void *state, const fr_query *query, int, int, float *scores, fr_error *) {
    static_cast<const recency *>(state)->score(*query, scores);
    return FR_OK;
}

fr_status observe(void *state, const fr_event *event, fr_error *err) {
    try {
        static_cast<recency *>(state)->observe(*event);
        return FR_OK;
    } catch (const std::bad_alloc &) {
        return fr_fail(err, FR_ENOMEM, "out of memory");
    }
}

fr_status open(const fr_window *window, const void *, int64_t, fr_scorer_definition *out,
               fr_error *err) {
    try {
        out->state = new recency(window);
    } catch (const std::bad_alloc &) {
        return fr_fail(err, FR_ENOMEM, "out of memory");
    }
    out->score = score;
    out->observe = observe;
    out->close = [](void *state) { delete static_cast<recency *>(state); };
    return FR_OK;
}

} // namespace

FR_PLUGIN const fr_plugin *fullrank_plugin() {
    static const fr_plugin plugin = {
        FR_PLUGIN_ABI,
        {"recency", "own destinations, most recent first",
         "The source's own destinations, the most recently met on top, then all others by their "
         "last event.",
         nullptr, 0, open}};
    return &plugin;
}
