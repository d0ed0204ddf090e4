import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSystemInfo } from './system-info.ts';

function read(files: Readonly<Record<string, string>>) {
  return readSystemInfo({
    read: async (path) => files[path],
    addresses: () => [],
    lookup: async () => [],
    kernelRelease: () => '6.1.0-1-amd64',
  });
}

test('each fact is read from where the machine keeps it', async () => {
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

test('what one place does not tell is read from the next', async () => {
  const dbus = await read({ '/etc/machine-id': '\n', '/var/lib/dbus/machine-id': 'bbb' });
  assert.equal(dbus.machineId, 'bbb');
  const tree = await read({ '/proc/device-tree/system-id': 'dt-id\0' });
  assert.equal(tree.systemUuid, 'dt-id');
  const vm = await read({ '/proc/device-tree/vm,uuid': 'vm-id' });
  assert.equal(vm.systemUuid, 'vm-id');
  const id = await read({ '/etc/machine-id': 'aaa', '/usr/lib/os-release': "PRETTY_NAME='X'\n" });
  assert.deepEqual([id.systemUuid, id.osImage], ['aaa', 'X']);
});

test('a machine that tells nothing is a Linux without a name', async () => {
  const info = await read({});
  assert.deepEqual([info.machineId, info.systemUuid, info.bootId, info.osImage], ['', '', '', 'Linux']);
});
