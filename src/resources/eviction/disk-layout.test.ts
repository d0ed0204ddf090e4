import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EvictionSignal, EvictionThreshold } from '../../config/index.ts';
import { diskParts, reclaimSteps, withContainerDisk } from './disk-layout.ts';
import type { DiskLayout } from './eviction-stats.ts';

const layouts: readonly DiskLayout[] = ['single', 'dedicated', 'split'];
const disks = ['nodefs', 'imagefs', 'containerfs'] as const;

function table(of: (signal: EvictionSignal, layout: DiskLayout) => readonly string[]) {
  return Object.fromEntries(
    layouts.map((layout) => [
      layout,
      disks.map((disk) => {
        const parts = of(`${disk}.available`, layout).join(' ');
        assert.equal(of(`${disk}.inodesFree`, layout).join(' '), parts, 'the same applies to inodes');
        return parts;
      }),
    ]),
  );
}

describe('nodefs, imagefs and containerfs', () => {
  it('the disk layout decides which disk usage of a pod counts for a signal', () => {
    assert.deepEqual(table(diskParts), {
      single: ['rootfs logs volumes', 'rootfs logs volumes', 'rootfs logs volumes'],
      dedicated: ['logs volumes', 'rootfs', 'rootfs'],
      split: ['rootfs logs volumes', '', 'rootfs logs volumes'],
    });
    assert.deepEqual(diskParts('memory.available', 'single'), []);
  });

  it('the disk layout decides what is reclaimed first', () => {
    const both = 'dead-containers unused-images';
    assert.deepEqual(table(reclaimSteps), {
      single: [both, both, both],
      dedicated: ['', both, both],
      split: ['dead-containers', 'unused-images', 'dead-containers'],
    });
    assert.deepEqual(reclaimSteps('memory.available', 'single'), []);
    assert.deepEqual(reclaimSteps('pid.available', 'single'), []);
  });
});

describe('withContainerDisk: thresholds of containerfs', () => {
  const at = (signal: EvictionSignal, percent: number, gracePeriodMs = 0): EvictionThreshold => ({
    signal,
    kind: gracePeriodMs > 0 ? 'soft' : 'hard',
    value: { percent },
    gracePeriodMs,
    minimumReclaim: undefined,
  });
  const written = [
    at('memory.available', 1),
    at('nodefs.available', 10),
    at('nodefs.inodesFree', 5),
    at('imagefs.available', 15),
    at('containerfs.available', 99),
    at('nodefs.available', 20, 60_000),
  ];
  const shown = (layout: DiskLayout) =>
    withContainerDisk(written, layout)
      .filter(({ signal }) => signal.startsWith('containerfs'))
      .map(({ signal, kind, value }) => `${kind} ${signal} ${(value as { percent: number }).percent}`);

  it('containerfs gets the thresholds of the file system that it is identical with; thresholds configured for containerfs are ignored', () => {
    const asNode = [
      'hard containerfs.available 10',
      'hard containerfs.inodesFree 5',
      'soft containerfs.available 20',
    ];
    assert.deepEqual(shown('single'), asNode);
    assert.deepEqual(shown('split'), asNode);
    assert.deepEqual(shown('dedicated'), ['hard containerfs.available 15']);
  });

  it('keeps the thresholds of all file systems other than containerfs', () => {
    const rest = withContainerDisk(written, 'single').filter((each) => written.includes(each));
    assert.deepEqual(rest, written.toSpliced(4, 1));
  });
});
