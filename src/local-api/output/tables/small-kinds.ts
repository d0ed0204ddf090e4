import type { JsonObject } from '../../../api/index.ts';
import type { StoredObject } from '../../api/index.ts';
import {
  ageColumn,
  ageOf,
  type Cell,
  type Column,
  column,
  nameColumn,
  type Printer,
  shortDuration,
} from './column.ts';

/** Between name and age, what a kind has to show of its own. */
function between(columns: readonly Column[], cells: (object: StoredObject) => readonly Cell[]): Printer {
  return {
    columns: [nameColumn, ...columns, ageColumn],
    cells: (object, nowMs) => [
      object.metadata.name,
      ...cells(object),
      ageOf(object.metadata.creationTimestamp, nowMs),
    ],
  };
}

export const serviceAccountPrinter: Printer = between([], () => []);

export const namespacePrinter: Printer = between(
  [column('Status', 'Whether it takes new objects or is being taken down.')],
  ({ status }) => [String(status?.['phase'] ?? '')],
);

export const configMapPrinter: Printer = between([column('Data', 'How many entries it has.')], (object) => [
  sizeOf(object['data']) + sizeOf(object['binaryData']),
]);

export const secretPrinter: Printer = between(
  [
    column('Type', 'What it is for, which decides what it must hold.'),
    column('Data', 'How many entries it has.'),
  ],
  (object) => [String(object['type'] ?? ''), sizeOf(object['data'])],
);

function sizeOf(map: unknown): number {
  return Object.keys((map ?? {}) as JsonObject).length;
}

export const leasePrinter: Printer = between([column('Holder', 'Who holds it.')], ({ spec }) => [
  String(spec?.['holderIdentity'] ?? ''),
]);

export const runtimeClassPrinter: Printer = between(
  [column('Handler', 'What the container runtime calls this way to run pods.')],
  (object) => [String(object['handler'] ?? '')],
);

export const priorityClassPrinter: Printer = {
  columns: [
    nameColumn,
    column('Value', 'The priority of pods of this class; more comes first.', 'integer'),
    column('Global-Default', 'Whether pods that name no class belong to this one.', 'boolean'),
    ageColumn,
    column('PreemptionPolicy', 'Whether such pods may push out others.'),
  ],
  cells: (object, nowMs) => [
    object.metadata.name,
    Number(object['value'] ?? 0),
    object['globalDefault'] === true,
    ageOf(object.metadata.creationTimestamp, nowMs),
    String(object['preemptionPolicy'] ?? ''),
  ],
};

export const signingRequestPrinter: Printer = {
  columns: [
    nameColumn,
    ageColumn,
    column('SignerName', 'Who is asked to sign.'),
    column('Requestor', 'Who asked.'),
    column('RequestedDuration', 'For how long the certificate should hold.'),
    column('Condition', 'How far the request has come.'),
  ],
  cells: ({ metadata, spec, status }, nowMs) => {
    const seconds = spec?.['expirationSeconds'];
    return [
      metadata.name,
      ageOf(metadata.creationTimestamp, nowMs),
      String(spec?.['signerName'] || '<none>'),
      String(spec?.['username'] ?? ''),
      typeof seconds === 'number' ? shortDuration(seconds * 1000) : '<none>',
      requestProgress(status ?? {}),
    ];
  },
};

function requestProgress(status: JsonObject): string {
  const conditions = (status['conditions'] ?? []) as readonly JsonObject[];
  const has = (type: string) => conditions.some((condition) => condition['type'] === type);
  const verdict = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
  const failed = has('Failed') ? ',Failed' : '';
  return `${verdict}${failed}${(status['certificate'] ?? '') === '' ? '' : ',Issued'}`;
}

export const quotaPrinter: Printer = between(
  [
    column('Request', 'What is used of what may be requested or made.'),
    column('Limit', 'What is used of what the limits of containers may come to.'),
  ],
  ({ status }) => [quotaText(status, 'requests'), quotaText(status, 'limits')],
);

function quotaText(status: JsonObject | undefined, side: 'requests' | 'limits'): string {
  const hard = (status?.['hard'] ?? {}) as Readonly<Record<string, string>>;
  const used = (status?.['used'] ?? {}) as Readonly<Record<string, string>>;
  const names = Object.keys(hard).filter((name) => name.startsWith('limits.') === (side === 'limits'));
  return names
    .sort()
    .map((name) => `${name}: ${used[name] ?? '0'}/${hard[name] ?? ''}`)
    .join(', ');
}

export const disruptionBudgetPrinter: Printer = between(
  [
    column('Min Available', 'How many pods must stay.'),
    column('Max Unavailable', 'How many pods may be missing.'),
    column('Allowed Disruptions', 'How many pods may be taken away now.', 'integer'),
  ],
  ({ spec, status }) => [
    String(spec?.['minAvailable'] ?? 'N/A'),
    String(spec?.['maxUnavailable'] ?? 'N/A'),
    Number(status?.['disruptionsAllowed'] ?? 0),
  ],
);
