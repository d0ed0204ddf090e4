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

function createHarness(text?: string) {
  const files = new Map<string, string>(text === undefined ? [] : [[path, text]]);
  const writes: { path: string; survives: WriteOptions['survives'] }[] = [];
  const reported: string[] = [];
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
      corrupted: (message) => reported.push(message),
    });
    await file.open();
    return file;
  };
  const failing = (on: boolean) => {
    fails = on;
  };
  return { files, writes, told: reported, logs, open, failing };
}

test('persists an allocation for the next kubelet process', async () => {
  const { open } = createHarness();
  const file = await open();
  await file.set(a, cpu('1'));
  assert.deepEqual((await open()).get(a), { ...cpu('1'), pod: undefined });
});

test('writes a batch of allocations once, and nothing if no allocation changed', async () => {
  const { open, writes } = createHarness();
  const file = await open();
  await Promise.all([file.set(a, cpu('1')), file.set(b, cpu('2'))]);
  await file.set(a, cpu('1000m'));
  assert.equal(writes.length, 1);
});

test('also writes an allocation that is set while the file is being written', async () => {
  for (let turns = 0; turns < 12; turns++) {
    const { open, files } = createHarness();
    const file = await open();
    void file.set(a, cpu('1'));
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    await file.set(b, cpu('2'));
    assert.match(files.get(path) ?? '', /"b/, `after ${turns} turns`);
  }
});

test('persists a changed allocation across a power failure, and the allocation of a new pod only across a crash of the kubelet', async () => {
  const { open, writes } = createHarness();
  const file = await open();
  await file.set(a, cpu('1'));
  await file.set(a, cpu('2'));
  await file.set(b, cpu('1'));
  assert.deepEqual(
    writes.map(({ survives }) => survives),
    ['crash', 'power-cut', 'crash'],
  );
});

test('removes a deleted pod from the file with the next change', async () => {
  const { open } = createHarness();
  const file = await open();
  await file.set(a, cpu('1'));
  file.retain(() => false);
  assert.equal(file.size, 0);
  await file.set(b, cpu('1'));
  assert.equal((await open()).get(a), undefined);
});

test('moves a corrupt checkpoint file aside, reports it, and starts a new one', async () => {
  const { open, files, told } = createHarness('{"data":"{}","checksum":1}');
  const file = await open();
  assert.equal(file.size, 0);
  assert.match(
    told[0] ?? '',
    /Cannot use the file .*allocated_pods_state: its checksum .*set aside as .*\.corrupt/,
  );
  assert.equal(files.get(`${path}.corrupt`), '{"data":"{}","checksum":1}');
  await file.set(a, cpu('1'));
  assert.equal(files.get(path), encodeAllocations(new Map([[a, cpu('1')]])).text);
});

test('reports a failed checkpoint write, keeps the value in memory, and retries with the next change', async () => {
  const { open, failing, logs, files } = createHarness();
  const file = await open();
  failing(true);
  await file.set(a, cpu('1'));
  assert.deepEqual(file.get(a), cpu('1'));
  assert.ok([...logs.records].some(({ message }) => message.startsWith('Failed to write pod resources')));
  failing(false);
  await file.set(b, cpu('1'));
  assert.match(files.get(path) ?? '', /\\"a\\"/);
});
