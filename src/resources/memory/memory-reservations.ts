import { formatQuantity, KubelingError, quantityOf } from '../../lib/index.ts';
import { hugePageResource, hugePageSizeName } from '../../pods/index.ts';

interface Reservations {
  readonly reserved: readonly {
    readonly numaNode: number;
    readonly limits: ReadonlyMap<string, bigint>;
  }[];
  readonly required: ReadonlyMap<string, bigint>;
}

/**
 * What is kept back on each NUMA node. Has to be just what is kept from pods on the whole: else the node would promise
 * more, or less, than its parts have. Throws ALLOCATION_CONFIG.
 */
export function checkedReservations(
  { reserved, required }: Reservations,
  numaNodes: readonly { readonly id: number }[],
): ReadonlyMap<number, ReadonlyMap<string, bigint>> {
  const sums = new Map<string, bigint>();
  for (const { numaNode, limits } of reserved) {
    if (!numaNodes.some(({ id }) => id === numaNode))
      fail(
        `the reserved memory configuration references a NUMA node ${numaNode} that does not exist on this machine`,
      );
    for (const [type, bytes] of limits) sums.set(type, (sums.get(type) ?? 0n) + bytes);
  }
  for (const type of new Set([...sums.keys(), ...required.keys()])) {
    const [sum, wanted] = [sums.get(type) ?? 0n, required.get(type) ?? 0n];
    if (sum !== wanted)
      fail(
        `the total amount "${told(sum)}" of type "${type}" is not equal to the value "${told(wanted)}" determined by Node Allocatable feature: correct reservedMemory, or systemReserved, kubeReserved and evictionHard`,
      );
  }
  if ((sums.get('memory') ?? 0n) === 0n) fail('you should specify the system reserved memory');
  return new Map(reserved.map(({ numaNode }) => [numaNode, ofNode(reserved, numaNode)]));
}

function ofNode(reserved: Reservations['reserved'], id: number): ReadonlyMap<string, bigint> {
  return new Map(reserved.flatMap(({ numaNode, limits }) => (numaNode === id ? [...limits] : [])));
}

function told(bytes: bigint): string {
  return formatQuantity(quantityOf(bytes, 'BinarySI'));
}

function fail(message: string): never {
  throw new KubelingError('ALLOCATION_CONFIG', `Cannot give out memory by NUMA node: ${message}`);
}

/** As pods name pages of that size. */
export function pageResource(pageBytes: number): string {
  return hugePageResource(hugePageSizeName(BigInt(pageBytes)));
}
