import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { openPrivateRuntime } from '../private-runtime.ts';
import { skipReason } from './containerd-fixture.ts';

const nobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];

/** What another user of the machine gets there, by asking for exactly this path. */
function asNobody(...command: readonly string[]): 'done' | 'refused' {
  try {
    execFileSync('setpriv', [...nobody, ...command], { stdio: 'ignore' });
    return 'done';
  } catch {
    return 'refused';
  }
}

/** Containers with users of their own must get through to their root file systems, and so everybody may pass. */
it('CVE-2024-25621: other users read neither what containerd knows of containers nor what is in images', {
  skip: skipReason(),
}, async () => {
  await using runtime = await openPrivateRuntime();
  const { dataDir, dir, root, socket, ttrpcSocket, config } = runtime.containerd.layout;
  // As a containerd that closes nothing itself leaves them.
  for (const path of [dataDir, dir, root]) await chmod(path, 0o711);
  assert.equal(asNobody('test', '-x', root), 'done');
  const metadata = join(root, 'io.containerd.metadata.v1.bolt');
  const content = join(root, 'io.containerd.content.v1.content');
  for (const path of [
    join(metadata, 'meta.db'),
    join(content, 'blobs'),
    join(content, 'blobs/sha256'),
    config,
  ])
    assert.equal(asNobody('test', '-e', path, '-a', '-r', path), 'refused', path);
  for (const path of [socket, ttrpcSocket]) assert.equal(asNobody('test', '-w', path), 'refused', path);
});
