import { type DeleteOptions, isJsonObject, type JsonObject } from '../../api/index.ts';
import type { FieldCause } from './contract.ts';
import { wholeNumber } from './list-options.ts';
import { badRequest, invalidAs } from './refusals.ts';

export interface AskedDeletion extends DeleteOptions {
  readonly mode: 'meant' | 'rehearsal';
}

const policies = ['Foreground', 'Background', 'Orphan'];

/** How something is to be deleted: by the body, or else by the query. Throws a StatusError. */
export function deleteOptionsOf(body: unknown, query: URLSearchParams): AskedDeletion {
  const given = isJsonObject(body) && Object.keys(body).length > 0 ? body : fromQuery(query);
  const causes = [...policyCauses(given), ...dryRunCauses(given['dryRun'])];
  if (causes.length > 0) throw invalidAs({ kind: 'DeleteOptions', group: 'meta.k8s.io', name: '' }, causes);
  const { uid, resourceVersion } = (given['preconditions'] ?? {}) as DeleteOptions;
  return {
    gracePeriodSeconds: seconds(given['gracePeriodSeconds']),
    uid: text(uid, 'preconditions.uid'),
    resourceVersion: text(resourceVersion, 'preconditions.resourceVersion'),
    mode: Array.isArray(given['dryRun']) && given['dryRun'].length > 0 ? 'rehearsal' : 'meant',
  };
}

function fromQuery(query: URLSearchParams): JsonObject {
  return {
    ...(query.has('gracePeriodSeconds')
      ? { gracePeriodSeconds: wholeNumber(query, 'gracePeriodSeconds') }
      : {}),
    ...(query.has('propagationPolicy') ? { propagationPolicy: query.get('propagationPolicy') } : {}),
    ...(query.has('orphanDependents') ? { orphanDependents: query.get('orphanDependents') !== 'false' } : {}),
    dryRun: query.getAll('dryRun'),
  };
}

/** There is nobody here who collects what belongs to others, so that the policy is only looked at. */
function policyCauses({ propagationPolicy, orphanDependents }: JsonObject): readonly FieldCause[] {
  const field = 'propagationPolicy';
  if (propagationPolicy === undefined || propagationPolicy === null) return [];
  if (orphanDependents !== undefined && orphanDependents !== null)
    return [
      {
        reason: 'FieldValueInvalid',
        field,
        message: `Invalid value: "${propagationPolicy}": orphanDependents and deletionPropagation cannot be both set`,
      },
    ];
  if (policies.includes(String(propagationPolicy))) return [];
  const list = policies.map((policy) => `"${policy}"`);
  return [
    {
      reason: 'FieldValueNotSupported',
      field,
      message: `Unsupported value: "${propagationPolicy}": supported values: ${[...list, '"nil"'].join(', ')}`,
    },
  ];
}

function dryRunCauses(dryRun: unknown): readonly FieldCause[] {
  const values = Array.isArray(dryRun) ? (dryRun as readonly unknown[]) : [];
  const wrong = values.find((value) => value !== 'All');
  if (wrong === undefined) return [];
  return [
    {
      reason: 'FieldValueNotSupported',
      field: 'dryRun',
      message: `Unsupported value: ${JSON.stringify(values)}: supported values: "All"`,
    },
  ];
}

function seconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Number.isSafeInteger(value)) return value as number;
  throw badRequest(`gracePeriodSeconds must be a whole number: current value is ${JSON.stringify(value)}`);
}

function text(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  throw badRequest(`${field} must be a text: current value is ${JSON.stringify(value)}`);
}
