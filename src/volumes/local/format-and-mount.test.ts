import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { KubelingError } from '../../lib/index.ts';
import { unusable } from '../projected/payload.ts';
import type { DiskContent, Disks } from './format-and-mount.ts';
import { type DiskVolume, formatAndMount, isMismatch } from './format-and-mount.ts';

const { signal } = new AbortController();
const volume: DiskVolume = { device: '/dev/d', directory: '/m', fsType: '', options: [], access: 'write' };

function createEnvironment(
  content: DiskContent,
  failing: 'probe' | 'check' | 'mount' | 'nothing' = 'nothing',
) {
  const log: string[] = [];
  const step = async (name: string, more = '') => {
    log.push(`${name}${more}`);
    if (name === failing) throw unusable(`${name} failed`);
  };
  const disks: Disks = {
    probe: async () => {
      await step('probe');
      return content;
    },
    format: (_device, fsType) => step('format', ` ${fsType}`),
    check: () => step('check'),
    mount: ({ fsType, options }) => step('mount', ` ${fsType} ${options.join(',')}`),
    grow: async () => {},
    otherMounts: async () => [],
    deviceAt: async () => undefined,
    isHeld: async () => false,
  };
  return { disks, log };
}

const ext4: DiskContent = { kind: 'file-system', type: 'ext4' };
const xfs: DiskContent = { kind: 'file-system', type: 'xfs' };

describe('formatting and mounting a local disk', () => {
  for (const [what, content, changes, expected] of [
    [
      'formats an empty disk with the default file system',
      { kind: 'nothing' },
      {},
      ['format ext4', 'mount ext4 '],
    ],
    [
      'formats an empty disk with the requested file system',
      { kind: 'nothing' },
      { fsType: 'xfs' },
      ['format xfs', 'mount xfs '],
    ],
    [
      'checks and mounts an existing file system',
      ext4,
      { options: ['noatime'] },
      ['check', 'mount ext4 noatime'],
    ],
    ['keeps an existing file system of another type', xfs, {}, ['check', 'mount xfs ']],
    ['does not check a read-only disk', ext4, { access: 'read', options: ['ro'] }, ['mount ext4 ro']],
    ['neither formats nor checks a disk with partitions', { kind: 'partitions' }, {}, ['mount ext4 ']],
  ] as const) {
    it(what, async () => {
      const { disks, log } = createEnvironment(content);
      await formatAndMount(disks, { ...volume, ...changes }, signal);
      assert.deepEqual(log, ['probe', ...expected]);
    });
  }

  it('does not format an empty disk for a read-only mount', async () => {
    const { disks, log } = createEnvironment({ kind: 'nothing' });
    await assert.rejects(
      formatAndMount(disks, { ...volume, access: 'read' }, signal),
      /cannot mount unformatted disk \/dev\/d as we are manipulating it in read-only mode/,
    );
    assert.deepEqual(log, ['probe']);
  });

  it('does not write to a disk that cannot be read or repaired', async () => {
    for (const failing of ['probe', 'check'] as const) {
      const { disks, log } = createEnvironment(ext4, failing);
      await assert.rejects(formatAndMount(disks, volume, signal), new RegExp(`${failing} failed`));
      assert.equal(log.at(-1), failing);
    }
  });

  it('reports a file system mismatch when mounting a disk with another type fails', async () => {
    const endOf = async (content: DiskContent, fsType: string) => {
      const { disks } = createEnvironment(content, 'mount');
      return await formatAndMount(disks, { ...volume, fsType }, signal).then(
        () => assert.fail(),
        (error) => error,
      );
    };
    assert.equal(isMismatch(await endOf(ext4, 'xfs')), true);
    assert.equal(isMismatch(await endOf({ kind: 'partitions' }, 'ext4')), true);
    assert.equal(isMismatch(await endOf(ext4, 'ext4')), false);
    assert.equal(isMismatch(await endOf(ext4, '')), false);
    assert.equal(isMismatch(await endOf({ kind: 'nothing' }, 'xfs')), false);
    const wrapped = new KubelingError('VOLUME_UNUSABLE', 'more', { cause: await endOf(ext4, 'xfs') });
    assert.equal(isMismatch(wrapped), true);
    assert.equal(isMismatch(new Error('x')), false);
  });
});
