import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, type WriteOptions } from '../../lib/index.ts';
import { type PodAllocation, podUid } from '../../pods/index.ts';
import { encodeAllocations } from './checkpoint.ts';
import { PodResourceFile } from './pod-resource-file.ts';

const path = '/root/allocated_pods_state';
const [a, b] = [podUid('a'), podUid('b')];
const cpu = (amount: string): PodAllocation => ({ containers: { main: { requests: { cpu: amount } } } });

function rig(text?: string) {
  const files = new Map<string, string>(text === undefined ? [] : [[path, text]]);
  const writes: { path: string; survives: WriteOptions['survives'] }[] = [];
  const told: string[] = [];
  let fails = false;
  const logs = collectLogs(new VirtualClock());
  const open = async () => {
    const file = new PodResourceFile({
      path,
      files: {
        readEnd: async (where) => {
          const found = files.get(where);
          return found === undefined ? undefined : Buffer.from(found);
        },
        async replace(where, content, { survives }) {
          if (fails) throw new Error('no space left');
          writes.push({ path: where, survives });
          files.set(where, content);
        },
      },
      logger: logs.logger,
      corrupted: (message) => told.push(message),
    });
    await file.open();
    return file;
  };
  const failing = (on: boolean) => {
    fails = on;
  };
  return { files, writes, told, logs, open, failing };
}

test('what is set is known to the next kubelet', async () => {
  const { open } = rig();
  const file = await open();
  await file.set(a, cpu('1'));
  assert.deepEqual((await open()).get(a), { ...cpu('1'), pod: undefined });
});

test('a batch is one write, and what is as it was is none', async () => {
  const { open, writes } = rig();
  const file = await open();
  await Promise.all([file.set(a, cpu('1')), file.set(b, cpu('2'))]);
  await file.set(a, cpu('1000m'));
  assert.equal(writes.length, 1);
});

test('what is set at whatever moment of a write is written, too', async () => {
  for (let turns = 0; turns < 12; turns++) {
    const { open, files } = rig();
    const file = await open();
    void file.set(a, cpu('1'));
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await file.set(b, cpu('2'));
    assert.match(files.get(path) ?? '', /"b/, `after ${turns} turns`);
  }
});

test('a change outlives a power cut, a newcomer only this process', async () => {
  const { open, writes } = rig();
  const file = await open();
  await file.set(a, cpu('1'));
  await file.set(a, cpu('2'));
  await file.set(b, cpu('1'));
  assert.deepEqual(
    writes.map(({ survives }) => survives),
    ['crash', 'power-cut', 'crash'],
  );
});

test('a pod that is gone goes with the next change', async () => {
  const { open } = rig();
  const file = await open();
  await file.set(a, cpu('1'));
  file.retain(() => false);
  assert.equal(file.size, 0);
  await file.set(b, cpu('1'));
  assert.equal((await open()).get(a), undefined);
});

test('a file that makes no sense is set aside and explained, and a new one begun', async () => {
  const { open, files, told } = rig('{"data":"{}","checksum":1}');
  const file = await open();
  assert.equal(file.size, 0);
  assert.match(told[0] ?? '', /allocated_pods_state cannot be used: its checksum .*set aside as .*\.corrupt/);
  assert.equal(files.get(`${path}.corrupt`), '{"data":"{}","checksum":1}');
  await file.set(a, cpu('1'));
  assert.equal(files.get(path), encodeAllocations(new Map([[a, cpu('1')]])).text);
});

test('what cannot be written is told, holds all the same, and is written with the next change', async () => {
  const { open, failing, logs, files } = rig();
  const file = await open();
  failing(true);
  await file.set(a, cpu('1'));
  assert.deepEqual(file.get(a), cpu('1'));
  assert.ok([...logs.records].some(({ message }) => message.startsWith('Cannot keep the resources of pods')));
  failing(false);
  await file.set(b, cpu('1'));
  assert.match(files.get(path) ?? '', /\\"a\\"/);
});
