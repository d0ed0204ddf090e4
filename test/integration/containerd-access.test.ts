import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { openPrivateRuntime } from '../private-runtime.ts';
import { skipReason } from './containerd-fixture.ts';

const nobody = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];

/** Runs the command as an unprivileged user; returns whether it succeeded. */
function asNobody(...command: readonly string[]): 'done' | 'refused' {
  try {
    execFileSync('setpriv', [...nobody, ...command], { stdio: 'ignore' });
    return 'done';
  } catch {
    return 'refused';
  }
}

/**
 * All users may traverse the directory: containers with separate user IDs must reach their root
 * file systems.
 */
it('CVE-2024-25621: hides container state and image contents of containerd from other users', {
  skip: skipReason(),
}, async () => {
  await using runtime = await openPrivateRuntime();
  const { dataDir, dir, root, socket, ttrpcSocket, config } = runtime.containerd.layout;
  // The directory modes that a containerd without the fix for CVE-2024-25621 leaves.
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
