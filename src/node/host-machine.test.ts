import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalNode } from '../../test/fakes/local-node.ts';
import { NodeWorld } from '../../test/fakes/node-world.ts';
import { diskBytes, hostNodeMachine } from './host-machine.ts';

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

test('the interfaces are listed again only when an address may have changed', async () => {
  const world = new NodeWorld();
  let lists = 0;
  const deps = world.deps();
  const machine = {
    ...deps.machine,
    addresses: () => {
      lists++;
      return world.addresses;
    },
  };
  const local = new LocalNode({ ...deps, machine, learned: () => {} });
  const addressOf = async () => (await local.build(signal)).status?.addresses?.[0]?.address;
  world.files.set('/proc/net/fib_trie', 'one').set('/proc/net/if_inet6', 'fe80 veth1\n2001 eth0\n');
  const before = await addressOf();
  world.files.set('/proc/net/if_inet6', 'fe80 veth1\nfe80 veth2\n2001 eth0\n');
  world.addresses = [{ interface: 'eth0', address: '10.9.9.9' }];
  assert.deepEqual([await addressOf(), lists], [before, 1]);
  world.files.set('/proc/net/fib_trie', 'another');
  assert.deepEqual([await addressOf(), lists], ['10.9.9.9', 2]);
  world.files.delete('/proc/net/fib_trie');
  await addressOf();
  await addressOf();
  assert.equal(lists, 4);
});
