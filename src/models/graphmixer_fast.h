/* graphmixer_fast.h - knobs of GraphMixer's fast path, for tests and benchmarks alone. */
#ifndef FR_MODELS_GRAPHMIXER_FAST_H
#define FR_MODELS_GRAPHMIXER_FAST_H

/* Slots that go through the layers together, read when a scorer is opened: nodes are taken until
 * they have as many. No score depends on it. */
extern int graphmixer_fast_block;

#endif
