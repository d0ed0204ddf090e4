import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecordedJournal } from '../../../test/fakes/journal.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import { prepareClaims } from './dra-manager.ts';

test('a failure to prepare claims is reported as pod event and fails the sync', async () => {
  const journal = new RecordedJournal();
  const failing = { prepare: () => Promise.reject(new Error('no driver')) };
  const { signal } = new AbortController();
  await assert.rejects(prepareClaims({ claims: failing, journal }, aPod(), signal), /no driver/);
  assert.deepEqual(
    journal.events.map(({ type, reason, message }) => [type, reason, message]),
    [['Warning', 'FailedPrepareDynamicResources', 'Failed to prepare dynamic resources: no driver']],
  );
});

test('reports nothing for a pod that is terminated while its claims are prepared', async () => {
  const journal = new RecordedJournal();
  const stop = new AbortController();
  const claims = {
    async prepare() {
      stop.abort(new Error('ended'));
      throw new Error('preparation aborted');
    },
  };
  await assert.rejects(prepareClaims({ claims, journal }, aPod(), stop.signal), /ended/);
  assert.deepEqual(journal.events, []);
});
