import type { Container, PodSpec } from '../../kinds/index.ts';
import { decodeJson, KindTable } from '../../kinds/index.ts';
import type { FeatureGate } from '../../pods/index.ts';
import { badRequest, type StoredObject } from '../core/index.ts';
import { withoutSilence } from './empty-fields.ts';
import { withFields } from './pod-object.ts';

/** Features that are off unless asked for, in the release this API follows. */
const offGates: ReadonlySet<string> = new Set([
  'ContainerStopSignals',
  'GenericWorkload',
  'TaintTolerationComparisonOperators',
  'UserNamespacesHostNetworkSupport',
]);

export const enabledHere: FeatureGate = (gate) => !offGates.has(gate);

/** Reads specs: what is unknown goes, amounts get their usual spelling, and what no feature stands for goes too. */
export class SpecDecoder {
  #table: KindTable | undefined;

  /** Read when the first pod comes. */
  get table(): KindTable {
    this.#table ??= new KindTable();
    return this.#table;
  }

  decode({ spec = {} }: StoredObject): PodSpec {
    const { value, findings } = decodeJson<PodSpec>(this.table, 'PodSpec', withoutSilence(spec));
    const wrong = findings.filter(({ severity }) => severity === 'error');
    if (wrong.length > 0) throw undecodable(wrong.map(({ field, message }) => `spec.${field} ${message}`));
    return withoutDisabled({ ...value, containers: value.containers ?? [] });
  }
}

function undecodable(why: readonly string[]): Error {
  return badRequest(`Pod in version "v1" cannot be handled as a Pod: ${why.join(', ')}`);
}

function withoutDisabled(spec: PodSpec): PodSpec {
  return withFields(spec, {
    schedulingGroup: undefined,
    containers: spec.containers.map(withoutStopSignal),
    initContainers: spec.initContainers?.map(withoutStopSignal),
    ephemeralContainers: spec.ephemeralContainers?.map(withoutStopSignal),
  });
}

function withoutStopSignal<T extends Container>(container: T): T {
  const { lifecycle } = container;
  if (lifecycle?.stopSignal === undefined) return container;
  const { stopSignal: _, ...rest } = lifecycle;
  const { lifecycle: __, ...others } = container;
  return (Object.keys(rest).length === 0 ? others : { ...others, lifecycle: rest }) as T;
}
