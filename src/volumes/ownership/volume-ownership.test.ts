import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CsiWorld, disk } from '../../../test/fakes/csi-world.ts';
import { podWith } from '../../../test/fakes/payload-world.ts';
import type { WalkProgress } from './volume-ownership.ts';
import { OwnershipProgress } from './volume-ownership.ts';

const { signal } = new AbortController();

test('reports the ownership change of a large CSI volume', async () => {
  const environment = new CsiWorld();
  const { clock, files } = environment;
  const give = files.giveToGroup.bind(files);
  files.giveToGroup = async (
    directory: string,
    group: number,
    access?: 'read' | 'write' | 'as-is',
    news?: WalkProgress,
  ) => {
    news?.processed(7);
    await clock.sleep(100_000, signal);
    await give(directory, group, access);
  };
  const journal = {
    event: (_pod: unknown, { reason, message }: { readonly reason: string; readonly message: string }) =>
      void environment.events.push(`${reason} ${message}`),
  };
  const volumes = environment.volumes({
    reportOwnership: (pod, volume) =>
      new OwnershipProgress({ clock, journal, logger: environment.logs.logger }, pod, volume),
  });
  const mounting = volumes.setUp(podWith([], { securityContext: { fsGroup: 77 } }), disk, signal);
  await clock.advance(29_999);
  assert.deepEqual(environment.events, []);
  await clock.advance(60_001);
  const text =
    'VolumePermissionChangeInProgress Setting volume ownership for pv is taking longer than expected, consider using OnRootMismatch';
  assert.deepEqual(environment.events, [text, `${text}, processed 7 files`]);
  await clock.advance(10_000);
  await mounting;
  assert.equal(
    environment.observed.at(-1),
    'volume_apply_access_control kubernetes.io/csi:d.example success',
  );
});
