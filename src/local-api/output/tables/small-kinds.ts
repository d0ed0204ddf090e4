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

/** Creates a printer whose columns are the name, the given columns and the age. */
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
  [column('Status', 'Whether the namespace is active or terminating.')],
  ({ status }) => [String(status?.['phase'] ?? '')],
);

export const configMapPrinter: Printer = between(
  [column('Data', 'The number of data entries.')],
  (object) => [sizeOf(object['data']) + sizeOf(object['binaryData'])],
);

export const secretPrinter: Printer = between(
  [
    column('Type', 'The type of the secret, which determines its required keys.'),
    column('Data', 'The number of data entries.'),
  ],
  (object) => [String(object['type'] ?? ''), sizeOf(object['data'])],
);

function sizeOf(map: unknown): number {
  return Object.keys((map ?? {}) as JsonObject).length;
}

export const leasePrinter: Printer = between(
  [column('Holder', 'The identity of the lease holder.')],
  ({ spec }) => [String(spec?.['holderIdentity'] ?? '')],
);

export const runtimeClassPrinter: Printer = between(
  [column('Handler', 'The name of the handler in the container runtime.')],
  (object) => [String(object['handler'] ?? '')],
);

export const priorityClassPrinter: Printer = {
  columns: [
    nameColumn,
    column('Value', 'The priority of pods of this class; higher values come first.', 'integer'),
    column('Global-Default', 'Whether the class applies to pods without a class.', 'boolean'),
    ageColumn,
    column('PreemptionPolicy', 'Whether pods of this class may preempt others.'),
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
    column('SignerName', 'The requested signer.'),
    column('Requestor', 'Who asked.'),
    column('RequestedDuration', 'The requested lifetime of the certificate.'),
    column('Condition', 'The state of the request.'),
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
  const decision = has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending';
  const failed = has('Failed') ? ',Failed' : '';
  return `${decision}${failed}${(status['certificate'] ?? '') === '' ? '' : ',Issued'}`;
}

export const quotaPrinter: Printer = between(
  [
    column('Request', 'The used and the hard values of requests and object counts.'),
    column('Limit', 'The used and the hard values of limits.'),
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
    column('Min Available', 'The minimum number of available pods.'),
    column('Max Unavailable', 'The maximum number of unavailable pods.'),
    column('Allowed Disruptions', 'The number of pods that may be disrupted now.', 'integer'),
  ],
  ({ spec, status }) => [
    String(spec?.['minAvailable'] ?? 'N/A'),
    String(spec?.['maxUnavailable'] ?? 'N/A'),
    Number(status?.['disruptionsAllowed'] ?? 0),
  ],
);
