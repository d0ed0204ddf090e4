import type { JsonObject } from '../../../api/index.ts';
import type { Node } from '../../../kinds/index.ts';
import { addQuantities, formatQuantity, tryParseQuantity } from '../../../lib/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageColumn, ageOf, type Cell, column, nameColumn, orNone, type Printer, wide } from './column.ts';

export const nodePrinter: Printer = {
  columns: [
    nameColumn,
    column('Status', 'Whether the node is ready and schedulable.'),
    column('Roles', 'The roles of the node, from its labels.'),
    ageColumn,
    column('Version', 'The version of the kubelet on the node.'),
    wide('Internal-IP', 'The address of the node within the cluster.'),
    wide('External-IP', 'The external address of the node.'),
    wide('OS-Image', 'The name of the operating system.'),
    wide('Kernel-Version', 'The kernel release and the architecture.'),
    wide('Container-Runtime', 'The container runtime and its version.'),
  ],
  cells: (object, nowMs) => {
    const node = object as unknown as Node;
    const { metadata } = object;
    return [
      metadata.name,
      statusOf(node),
      orNone(rolesOf(metadata.labels ?? {}).join(',')),
      ageOf(metadata.creationTimestamp, nowMs),
      node.status?.nodeInfo?.kubeletVersion ?? '',
      addressOf(node, 'InternalIP'),
      addressOf(node, 'ExternalIP'),
      ...machineOf(node),
    ];
  },
};

function statusOf({ spec, status }: Node): string {
  const ready = status?.conditions?.findLast(({ type }) => type === 'Ready');
  const shown = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return spec?.unschedulable === true ? `${shown},SchedulingDisabled` : shown;
}

const rolePrefix = 'node-role.kubernetes.io/';

function rolesOf(labels: Readonly<Record<string, string>>): readonly string[] {
  const roles = Object.entries(labels).map(([key, value]) => {
    if (key.startsWith(rolePrefix)) return key.slice(rolePrefix.length);
    return key === 'kubernetes.io/role' ? value : '';
  });
  return [...new Set(roles.filter((role) => role !== ''))].sort();
}

function addressOf({ status }: Node, wanted: string): string {
  return orNone(status?.addresses?.find(({ type }) => type === wanted)?.address);
}

function machineOf({ status }: Node): readonly Cell[] {
  const { osImage, kernelVersion, containerRuntimeVersion, architecture } = status?.nodeInfo ?? {};
  const machine = architecture === undefined || architecture === '' ? '' : ` (${architecture})`;
  return [orUnknown(osImage), `${orUnknown(kernelVersion)}${machine}`, orUnknown(containerRuntimeVersion)];
}

function orUnknown(text: string | undefined): string {
  return text === undefined || text === '' ? '<unknown>' : text;
}

const amounts = ['cpu', 'memory'];

/** The columns of node and pod metrics; the usage of a pod is the sum of its containers. */
export const usagePrinter: Printer = {
  columns: [
    nameColumn,
    ...amounts.map((name) => ({ ...column(name, ''), format: 'quantity' as const })),
    { ...column('Window', ''), format: 'duration' },
  ],
  cells: (object) => [
    object.metadata.name,
    ...amounts.map((name) => totalOf(object, name)),
    String(object['window'] ?? ''),
  ],
};

function totalOf(object: StoredObject, amount: string): string {
  const parts = (object['containers'] ?? [object]) as readonly JsonObject[];
  const used = parts.flatMap(({ usage }) => tryParseQuantity(String((usage as JsonObject)?.[amount])) ?? []);
  return used.length === 0 ? '0' : formatQuantity(used.reduce(addQuantities));
}
