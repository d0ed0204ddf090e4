import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { floodScript, followFlood, SizeWatch } from '../../bench/log-flood.ts';
import { LoopDisk } from '../disks/loop-disk.ts';
import { InProcessNode } from '../in-process-node.ts';
import { eventually } from '../kubeling-node.ts';
import { skipReason } from './containerd-fixture.ts';

const mebibyte = 2 ** 20;

async function logDirectory(node: InProcessNode, name: string): Promise<string> {
  const { metadata } = await node.podIs(name, 'running', ({ phase }) => phase === 'Running');
  return join(node.podLogs, `${metadata.namespace}_${metadata.name}_${metadata.uid}`, 'main');
}

describe('log rotation of containers', { timeout: 300_000, skip: skipReason() }, () => {
  it('rotates container logs and limits their size without losing a line for a follower', async () => {
    const flags = ['--container-log-max-size=4Mi', '--container-log-max-files=3'];
    await using node = await InProcessNode.open({ flags });
    await node.put({ flood: { containers: { main: floodScript(8, 1) } } });
    const directory = await logDirectory(node, 'flood');
    await using sizes = new SizeWatch(directory);
    let restingSince = 0;
    let last = 0;
    const followed = await followFlood(node, 'flood', () => {
      const now = performance.now();
      if (sizes.now !== last || sizes.most < mebibyte) restingSince = now;
      last = sizes.now;
      return now - restingSince > 10_000;
    });
    assert.equal(followed.problem, undefined);
    assert.ok(followed.bytes > 50 * mebibyte, `${followed.bytes}`);
    const names = await readdir(directory);
    assert.ok(names.length <= 3 && names.includes('0.log'), names.join());
  });

  it('compresses a rotated log when the next log is rotated', async () => {
    const flags = ['--container-log-max-size=1Mi', '--container-log-max-files=4'];
    await using node = await InProcessNode.open({ flags });
    const line = 'x'.repeat(1_000);
    const burst = `i=0; while [ $i -lt 1200 ]; do echo "$i ${line}"; i=$((i+1)); done; sleep 3`;
    await node.put({ bursts: { containers: { main: `while true; do ${burst}; done` } } });
    const directory = await logDirectory(node, 'bursts');
    const names = await eventually('two logs to be compressed', async () => {
      const found = (await readdir(directory)).sort();
      return found.filter((name) => name.endsWith('.gz')).length === 2 ? found : undefined;
    });
    assert.ok(names.includes('0.log'), names.join());
    const packed = await readFile(join(directory, names.find((name) => name.endsWith('.gz')) ?? ''));
    const lines = String(gunzipSync(packed)).trimEnd().split('\n');
    assert.ok(lines.length >= 1_000);
    assert.ok(lines.every((text) => /^\S+ stdout F \d+ x{1000}$/.test(text)));
  });

  it('frees space on a full disk by deleting the oldest rotated logs', async () => {
    await using node = await InProcessNode.open({ flags: ['--container-log-max-size=4Mi'] });
    await node.stop();
    const disk = new LoopDisk(node.path('logs.img'), 16 * mebibyte);
    try {
      disk.format();
      mkdirSync(node.podLogs, { recursive: true });
      execFileSync('mount', [disk.device, node.podLogs]);
      try {
        await node.start();
        await node.put({ flood: { containers: { main: floodScript(5) } } });
        const directory = await logDirectory(node, 'flood');
        await eventually('the disk to be full', async () => {
          const { bavail, bsize } = statfsSync(node.podLogs);
          return bavail * bsize < mebibyte ? true : undefined;
        });
        await eventually('free space again, and a log that is written', async () => {
          const { bavail, bsize } = statfsSync(node.podLogs);
          const names = await readdir(directory);
          return bavail * bsize > 2 * mebibyte && names.includes('0.log') ? true : undefined;
        });
        await node.clear();
      } finally {
        await node.stop();
        execFileSync('umount', ['-l', node.podLogs]);
      }
    } finally {
      disk[Symbol.dispose]();
    }
  });
});
