import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { apiResources } from './resource.ts';
import {
  BrokenConnection,
  mayRepeatRefused,
  type Repetition,
  repeatAfterBreakMs,
  repetitionOfPatch,
  repetitionOfPost,
  retryAfterOf,
} from './retry.ts';

test('retries a rejected request after the delay that the server requests, but not an unsafe request that the server may have processed', () => {
  const may = (status: number, repetition: Repetition, retryAfterMs: number | undefined = 1_000) =>
    mayRepeatRefused({ status, repetition, retryAfterMs });
  assert(may(429, 'unsafe'));
  assert(may(503, 'unsafe'));
  assert(!may(500, 'unsafe'));
  assert(may(500, 'same-effect'));
  assert(may(504, 'harmless'));
  assert(!may(404, 'harmless'));
  assert(!mayRepeatRefused({ status: 429, repetition: 'harmless', retryAfterMs: undefined }));
});

test('retries a read up to three times after a broken connection, and an idempotent change once if a reused idle connection broke', () => {
  const delays = (repetition: Repetition, socket: 'new' | 'reused') =>
    [0, 1, 2, 3].map((before) => repeatAfterBreakMs({ code: 'ECONNRESET', socket, repetition, before }));
  assert.deepEqual(delays('harmless', 'new'), [0, 100, 1_000, undefined]);
  assert.deepEqual(delays('same-effect', 'reused'), [0, undefined, undefined, undefined]);
  assert.deepEqual(delays('same-effect', 'new'), [undefined, undefined, undefined, undefined]);
  assert.deepEqual(delays('unsafe', 'reused'), [undefined, undefined, undefined, undefined]);
  const refused = { code: 'ECONNREFUSED', socket: 'new', repetition: 'harmless', before: 0 } as const;
  assert.equal(repeatAfterBreakMs(refused), undefined);
});

test('reads the retry delay from seconds, a date or the body', () => {
  const clock = new VirtualClock({ startMs: Date.UTC(2026, 0, 1) });
  assert.equal(retryAfterOf({ 'retry-after': '7' }, {}, clock), 7_000);
  assert.equal(retryAfterOf({ 'retry-after': 'Thu, 01 Jan 2026 00:00:30 GMT' }, {}, clock), 30_000);
  assert.equal(retryAfterOf({ 'retry-after': 'soon' }, {}, clock), undefined);
  assert.equal(retryAfterOf({}, { details: { retryAfterSeconds: 3 } }, clock), 3_000);
  assert.equal(retryAfterOf({}, {}, clock), undefined);
});

test('classifies requests by the effect of a repetition', () => {
  assert.equal(repetitionOfPost(apiResources.subjectAccessReviews), 'harmless');
  assert.equal(repetitionOfPost(apiResources.pods), 'unsafe');
  assert.equal(repetitionOfPatch('json'), 'unsafe');
  assert.equal(repetitionOfPatch('strategic'), 'same-effect');
});

test('finds the error code of a broken connection in nested causes', () => {
  const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
  assert.equal(new BrokenConnection(new AggregateError([reset]), 'new').code, 'ECONNRESET');
  assert.equal(new BrokenConnection(new Error('x', { cause: reset }), 'new').code, 'ECONNRESET');
  assert.equal(new BrokenConnection('text', 'new').code, undefined);
});
