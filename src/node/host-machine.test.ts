import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NodeWorld } from '../../test/fakes/node-world.ts';
import { diskBytes, hostNodeMachine } from './host-machine.ts';
import { LocalNode } from './local-node.ts';

const { signal } = new AbortController();

test('the machine is read as it is, and what it does not have is not there', async () => {
  const machine = hostNodeMachine();
  assert.equal(await machine.read('/does/not/exist'), undefined);
  assert.match((await machine.read('/proc/sys/kernel/random/boot_id')) ?? '', /^[-0-9a-f]{36}\n$/);
  assert.match(machine.kernelRelease(), /^\d+\./);
  assert.ok(machine.addresses().every(({ interface: name, address }) => name !== '' && address !== ''));
  assert.ok(((await diskBytes('/')) ?? 0) > 0);
  assert.equal(await diskBytes('/does/not/exist'), undefined);
});

test('a Node can be built without an API server', async () => {
  const world = new NodeWorld();
  world.names = { n1: ['192.168.1.5'] };
  const learned: unknown[] = [];
  const local = new LocalNode({
    ...world.deps({ labels: { pool: 'a' } }),
    learned: (...all) => void learned.push(all),
  });
  const node = await local.build(signal);
  assert.equal(node.metadata?.labels?.['pool'], 'a');
  assert.equal(node.status?.addresses?.[0]?.address, '192.168.1.5');
  assert.equal(node.status?.capacity?.['cpu'], '4');
  assert.equal(world.api.calls.length, 0);
  assert.deepEqual(learned, [
    ['runtime', undefined],
    ['images', undefined],
  ]);
});
