import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { StoredObject } from '../../../src/local-api/api/index.ts';
import { ApiRig, podRef, pods, type Watched } from '../../fakes/api-rig.ts';

type Step =
  | { readonly do: 'put'; readonly name: string; readonly node: string | undefined; readonly phase: string }
  | { readonly do: 'delete'; readonly name: string; readonly grace: number }
  | { readonly do: 'finalize'; readonly name: string; readonly finalizers: readonly string[] }
  | { readonly do: 'wait'; readonly ms: number };

const name = fc.constantFrom('a', 'b', 'c', 'd');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    name,
    node: fc.constantFrom('n1', 'n2', undefined),
    phase: fc.constantFrom('Pending', 'Running', 'Failed'),
  }),
  fc.record({ do: fc.constant('delete' as const), name, grace: fc.constantFrom(0, 5, 30) }),
  fc.record({ do: fc.constant('finalize' as const), name, finalizers: fc.constantFrom([], ['x/y']) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.nat(20) }),
);

async function take(harness: ApiRig, taken: Step): Promise<void> {
  if (taken.do === 'wait') return await harness.clock.advance(taken.ms);
  const ref = podRef(taken.name);
  if (taken.do === 'put')
    harness.pod(taken.name, { spec: { nodeName: taken.node }, status: { phase: taken.phase } });
  else if (harness.api.object(ref) === undefined) return;
  else if (taken.do === 'delete') harness.api.deletePod('default', taken.name, taken.grace);
  else
    harness.api.change(ref, (object) => ({
      ...object,
      metadata: { ...object.metadata, finalizers: taken.finalizers },
    }));
}

/**
 * A watcher that applies every event to its copy of the objects; it reports events that are
 * inconsistent with the copy.
 */
function replayed({ events }: Watched): readonly StoredObject[] {
  const known = new Map<string, StoredObject>();
  let version = 0;
  for (const event of events) {
    const next = Number(event.object.metadata?.resourceVersion);
    if (event.type === 'BOOKMARK') continue;
    const { uid } = event.object.metadata;
    assert.equal(
      event.type === 'ADDED',
      !known.has(uid),
      `${event.type} of what is known: ${known.has(uid)}`,
    );
    if (known.size > 0 && version > 0 && event.type !== 'ADDED') assert.ok(next > version);
    version = next;
    if (event.type === 'DELETED') known.delete(uid);
    else known.set(uid, event.object);
  }
  return [...known.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

test("the objects built from a watch equal the server's objects, for every selector and start version", async () => {
  const history = fc.array(step, { minLength: 1, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(history, history, fc.nat(), async (before, after, seed) => {
      using harness = new ApiRig({ seed });
      for (const taken of before) await take(harness, taken);
      const ofNode = harness.watch(harness.node, { resource: pods, fieldSelector: 'spec.nodeName=n1' });
      const running = harness.watch(harness.admin, { resource: pods, fieldSelector: 'status.phase=Running' });
      for (const taken of after) await take(harness, taken);
      await harness.clock.advance(100);
      const all = harness.api.objects(pods);
      assert.deepEqual(
        replayed(ofNode),
        all.filter(({ spec }) => spec?.['nodeName'] === 'n1'),
      );
      assert.deepEqual(
        replayed(running),
        all.filter(({ status }) => status?.['phase'] === 'Running'),
      );
    }),
    { numRuns: 60 },
  );
});

test('a watch resumed from a version delivers the same events as an uninterrupted one', async () => {
  const history = fc.array(step, { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(history, history, async (before, after) => {
      using harness = new ApiRig();
      for (const taken of before) await take(harness, taken);
      const begun = harness.watch(harness.node, { resource: pods, fieldSelector: 'spec.nodeName=n1' });
      await harness.clock.advance(100);
      const [from, count] = [harness.api.version, begun.events.length];
      for (const taken of after) await take(harness, taken);
      const gone = harness.watch(harness.node, {
        resource: pods,
        fieldSelector: 'spec.nodeName=n1',
        begin: 'at-version',
        resourceVersion: from,
      });
      await harness.clock.advance(100);
      assert.deepEqual(gone.events, begun.events.slice(count));
    }),
    { numRuns: 40 },
  );
});
