import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DeviceTable } from './device-table.ts';
import type { PluginConnection } from './plugin-connection.ts';

const resource = 'example.com/gadget';
const two = new Map(['a', 'b'].map((id) => [id, { id, isHealthy: true, numaNodes: [] }]));

function aPlugin(): PluginConnection {
  return { resource, options: { preStartRequired: false } } as unknown as PluginConnection;
}

function told(table: DeviceTable): string {
  const { capacity, allocatable } = table.amounts();
  return `${allocatable[resource]} of ${capacity[resource]}`;
}

test('the healthy devices of a disconnected plugin count again only after the plugin has registered again and listed them', () => {
  const table = new DeviceTable(() => 0, 45_000);
  const [first, second] = [aPlugin(), aPlugin()];
  table.connect(first);
  assert.equal(told(table), 'undefined of undefined', 'unknown resource');
  table.list(first, two);
  assert.equal(told(table), '2 of 2');
  table.disconnect(first);
  assert.equal(told(table), '0 of 2');
  table.connect(second);
  assert.equal(told(table), '0 of 2');
  table.list(second, two);
  assert.equal(told(table), '2 of 2');
});

test('a resource restored from the checkpoint has no devices after its plugin has registered but not listed any', () => {
  const table = new DeviceTable(() => 0, 45_000);
  table.restore(resource);
  assert.equal(told(table), '0 of 0');
  table.connect(aPlugin());
  assert.equal(told(table), '0 of 0');
});
