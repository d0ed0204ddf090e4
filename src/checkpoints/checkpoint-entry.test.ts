import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type CheckpointEntry, decodeEntry, encodeEntry, terminationMsLeft } from './checkpoint-entry.ts';

const count = fc.nat();
const time = fc.date({ noInvalidDate: true }).map((at) => at.toISOString());
const containers = fc.array(
  fc.record(
    {
      name: fc.string(),
      image: fc.string(),
      imageID: fc.string(),
      ready: fc.boolean(),
      restartCount: count,
      containerID: fc.string(),
      state: fc.constantFrom(
        { running: { startedAt: '2026-01-01T00:00:00Z' } },
        { terminated: { exitCode: 1 } },
      ),
      lastState: fc.record({ terminated: fc.record({ exitCode: count, message: fc.string() }) }),
    },
    { requiredKeys: ['name', 'image', 'imageID', 'ready', 'restartCount'] },
  ),
  { maxLength: 3 },
);
const notes: fc.Arbitrary<CheckpointEntry> = fc.record(
  {
    source: fc.constantFrom('file', 'http', 'api'),
    name: fc.string(),
    namespace: fc.string(),
    boot: fc.string(),
    initializedSandbox: fc.string(),
    startUnderWay: fc.string(),
    postStarts: fc.array(fc.string()),
    preStops: fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.record({ sinceMs: count, graceSeconds: count }),
    ),
    termination: fc.record({ sinceMs: count, graceSeconds: count }),
    restarts: fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.record({ failures: count, delayMs: count, lastMs: count }),
    ),
    volumes: fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.record(
        {
          name: fc.string({ minLength: 1 }),
          claim: fc.string({ minLength: 1 }),
          source: fc.constantFrom(
            { kind: 'local', path: '/a' },
            { kind: 'hostPath', path: '/b', type: 'File' },
          ),
          readOnly: fc.boolean(),
          mountOptions: fc.array(fc.string()),
          use: fc.constantFrom('one-pod', 'any'),
          group: count,
        },
        { requiredKeys: ['name', 'claim', 'source', 'readOnly', 'mountOptions', 'use'] },
      ),
    ),
    status: fc.record(
      {
        startTime: time,
        phase: fc.constantFrom('Succeeded', 'Failed'),
        reason: fc.string(),
        message: fc.string(),
        conditions: fc.array(
          fc.record({
            type: fc.constantFrom('Ready', 'PodScheduled'),
            status: fc.constantFrom('True', 'False'),
            lastTransitionTime: time,
          }),
          { maxLength: 5 },
        ),
        podIPs: fc.array(fc.record({ ip: fc.string() }), { maxLength: 2 }),
        containerStatuses: containers,
        initContainerStatuses: containers,
        ephemeralContainerStatuses: containers,
        probed: fc.dictionary(
          fc.string().filter((key) => key !== '__proto__'),
          fc.record({ started: fc.boolean(), ready: fc.boolean() }),
        ),
      },
      { requiredKeys: ['startTime', 'conditions'] },
    ),
  },
  { requiredKeys: ['source', 'name', 'namespace', 'boot'] },
) as fc.Arbitrary<CheckpointEntry>;

describe('checkpoint entries', () => {
  it('decodes an encoded entry to the same value', () => {
    fc.assert(
      fc.property(notes, (each) => {
        assert.equal(encodeEntry(decodeEntry(encodeEntry(each)) ?? each), encodeEntry(each));
        assert.notEqual(decodeEntry(encodeEntry(each)), undefined);
      }),
    );
  });

  it('rejects an entry that is truncated at any position', () => {
    fc.assert(
      fc.property(notes, fc.double({ min: 0, max: 0.99, noNaN: true }), (each, share) => {
        const text = encodeEntry(each).trimEnd();
        assert.equal(decodeEntry(text.slice(0, Math.floor(text.length * share))), undefined);
      }),
    );
  });

  it('decodes entries in the format of earlier releases', () => {
    const old = { version: 1, source: 'file', name: 'web', namespace: 'default', boot: 'b', postStart: 'a' };
    const { postStart: _one, version: _version, ...same } = old;
    assert.deepEqual(decodeEntry(JSON.stringify(old)), { ...same, postStarts: ['a'] });
  });

  it('rejects an entry with invalid or additional content', () => {
    fc.assert(fc.property(fc.json(), (text) => decodeEntry(text) === undefined));
    const good = { version: 1, source: 'file', name: 'web', namespace: 'default', boot: 'b' };
    const bad = [
      { version: 2 },
      { source: 'elsewhere' },
      { name: 7 },
      { boot: undefined },
      { initializedSandbox: {} },
      { startUnderWay: 7 },
      { postStart: 7 },
      { postStarts: 'a' },
      { postStarts: ['a', 7] },
      { termination: { sinceMs: 1 } },
      { termination: { sinceMs: -1, graceSeconds: 1 } },
      { restarts: [] },
      { restarts: { main: { failures: 1, delayMs: '10', lastMs: 0 } } },
      { volumes: [] },
      { volumes: { v: { name: 'disk' } } },
      { end: { phase: 'Running' } },
      { status: { startTime: '2026-01-01T00:00:00Z' } },
      { status: { startTime: 'yesterday', conditions: [] } },
      { status: { startTime: '2026-01-01T00:00:00Z', phase: 'Running', conditions: [] } },
      { status: { startTime: '2026-01-01T00:00:00Z', reason: 7, conditions: [] } },
      { status: { startTime: '2026-01-01T00:00:00Z', conditions: [{ type: 'Ready', status: 'True' }] } },
    ];
    assert.notEqual(decodeEntry(JSON.stringify(good)), undefined);
    for (const part of bad) assert.equal(decodeEntry(JSON.stringify({ ...good, ...part })), undefined);
  });
});

it('computes a remaining grace period between one second and the full period, however the clock changes', () => {
  const left = (nowMs: number) => terminationMsLeft({ sinceMs: 100_000, graceSeconds: 30 }, nowMs);
  assert.deepEqual([100_000, 110_000, 129_500, 130_000].map(left), [30_000, 20_000, 1_000, 1_000]);
  assert.equal(left(3_700_000), 1_000);
  assert.equal(left(0), 30_000);
  assert.equal(terminationMsLeft({ sinceMs: 0, graceSeconds: 0 }, 0), 1_000);
});
