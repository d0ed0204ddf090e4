import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalNode } from '../../test/fakes/local-node.ts';
import { NodeWorld } from '../../test/fakes/node-world.ts';
import { diskBytes, goArchitecture, hostNodeMachine, readSystemInfo } from './system-info.ts';

function read(files: Readonly<Record<string, string>>) {
  return readSystemInfo({
    read: async (path) => files[path],
    addresses: () => [],
    lookup: async () => [],
    kernelRelease: () => '6.1.0-1-amd64',
  });
}

test('reads each item of system information from its file', async () => {
  const info = await read({
    '/etc/machine-id': 'aaa\n',
    '/var/lib/dbus/machine-id': 'bbb\n',
    '/sys/class/dmi/id/product_uuid': 'UUID-1\n',
    '/proc/sys/kernel/random/boot_id': 'boot\n',
    '/etc/os-release': 'ID=debian\nPRETTY_NAME="Debian \\"12\\""\n',
  });
  assert.deepEqual(info, {
    machineId: 'aaa',
    systemUuid: 'UUID-1',
    bootId: 'boot',
    kernelVersion: '6.1.0-1-amd64',
    osImage: 'Debian "12"',
  });
});

test('falls back to another file when the first file of an item of system information is missing', async () => {
  const dbus = await read({ '/etc/machine-id': '\n', '/var/lib/dbus/machine-id': 'bbb' });
  assert.equal(dbus.machineId, 'bbb');
  const tree = await read({ '/proc/device-tree/system-id': 'dt-id\0' });
  assert.equal(tree.systemUuid, 'dt-id');
  const vm = await read({ '/proc/device-tree/vm,uuid': 'vm-id' });
  assert.equal(vm.systemUuid, 'vm-id');
  const id = await read({ '/etc/machine-id': 'aaa', '/usr/lib/os-release': "PRETTY_NAME='X'\n" });
  assert.deepEqual([id.systemUuid, id.osImage], ['aaa', 'X']);
});

test('reports a machine whose files cannot be read as Linux without an OS name', async () => {
  const info = await read({});
  assert.deepEqual([info.machineId, info.systemUuid, info.bootId, info.osImage], ['', '', '', 'Linux']);
});

const { signal } = new AbortController();

test('reads the system information of the machine that runs the test', async () => {
  const machine = hostNodeMachine();
  assert.equal(await machine.read('/does/not/exist'), undefined);
  assert.match((await machine.read('/proc/sys/kernel/random/boot_id')) ?? '', /^[-0-9a-f]{36}\n$/);
  assert.match(machine.kernelRelease(), /^\d+\./);
  assert.ok(machine.addresses().every(({ interface: name, address }) => name !== '' && address !== ''));
  assert.ok(((await diskBytes('/')) ?? 0) > 0);
  assert.equal(await diskBytes('/does/not/exist'), undefined);
});

test('builds a Node object without an API server', async () => {
  const world = new NodeWorld();
  world.names = { n1: ['192.168.1.5'] };
  const learned: unknown[] = [];
  const local = new LocalNode({
    ...world.deps({ labels: { pool: 'a' } }),
    onResult: (...all) => void learned.push(all),
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

test('lists the network interfaces only when an address may have changed', async () => {
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
  const local = new LocalNode({ ...deps, machine, onResult: () => {} });
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

test("uses Go's names of processor architectures", () => {
  assert.deepEqual(['x64', 'arm64', 's390x', 'ppc64', 'ia32'].map(goArchitecture), [
    'amd64',
    'arm64',
    's390x',
    'ppc64le',
    '386',
  ]);
});
