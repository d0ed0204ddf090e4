import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hugePageResourceOf, validateReservedMemory } from './memory-manager.ts';

const nodes = [{ id: 0 }, { id: 1 }];
const on = (numaNode: number, memory: number) => ({
  numaNode,
  limits: new Map([['memory', BigInt(memory)]]),
});
const required = new Map([['memory', 300n]]);

describe('reserved memory of NUMA nodes', () => {
  it('accepts reserved memory whose sum over the NUMA nodes equals the reservations of the node', () => {
    const retained = validateReservedMemory({ reserved: [on(0, 100), on(1, 200)], required }, nodes);
    assert.equal(retained.get(1)?.get('memory'), 200n);
  });

  it('rejects reserved memory whose sum differs from the reservations of the node or that names an unknown NUMA node', () => {
    const refused = (reserved: readonly ReturnType<typeof on>[], expected: RegExp) =>
      assert.throws(() => validateReservedMemory({ reserved, required }, nodes), expected);
    refused([on(0, 100)], /total amount "100" of type "memory" is not equal to the value "300"/);
    refused([], /total amount "0"/);
    refused([on(2, 300)], /NUMA node 2 that does not exist/);
    assert.throws(
      () => validateReservedMemory({ reserved: [], required: new Map() }, nodes),
      /you should specify/,
    );
  });

  it('names the resource of a huge page size as in pod specs, such as hugepages-2Mi', () => {
    assert.deepEqual([2 ** 16, 2 ** 21, 2 ** 30].map(hugePageResourceOf), [
      'hugepages-64Ki',
      'hugepages-2Mi',
      'hugepages-1Gi',
    ]);
  });
});
