import { podUid } from '../../pods/index.ts';
import { type GoField, goChecksum, goMap, jsonObject, sortedByKey } from '../go-text.ts';
import { formatCpuSet, parseCpuSet } from './cpu-set.ts';
import type { CpuState } from './cpu-state.ts';

/** Below the root directory; the same file whichever kubelet runs. */
export const cpuStateFile = 'cpu_manager_state';

type Entries = ReadonlyMap<string, ReadonlyMap<string, string>>;

interface Checkpoint {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: Entries;
}

export interface CpuCheckpoint {
  readonly policyName: string;
  readonly state: CpuState;
}

/** The names one kubelet or another has given what is hashed, all for the same content. */
const typeNames = ['CPUManagerCheckpoint', 'CPUManagerCheckpointV2'];

export function encodeCpuCheckpoint({ policyName, state }: CpuCheckpoint): string {
  const entries = sortedByKey(
    [...state.assignments].map(([uid, own]) => [
      uid,
      sortedByKey([...own].map(([name, cpus]) => [name, formatCpuSet(cpus)])),
    ]),
  );
  const checkpoint = { policyName, defaultCpuSet: formatCpuSet(state.defaultCpuSet), entries };
  const written = Object.fromEntries([...entries].map(([uid, own]) => [uid, Object.fromEntries(own)]));
  return JSON.stringify({
    policyName,
    defaultCpuSet: checkpoint.defaultCpuSet,
    ...(entries.size === 0 ? {} : { entries: written }),
    checksum: checksumOf(checkpoint, typeNames[0] ?? ''),
  });
}

/** Throws an error that says what is wrong with it. */
export function decodeCpuCheckpoint(text: string): CpuCheckpoint {
  const json = jsonObject(JSON.parse(text), 'it');
  const { policyName, defaultCpuSet, checksum } = json;
  if (typeof policyName !== 'string' || typeof defaultCpuSet !== 'string' || typeof checksum !== 'number')
    throw new Error('policyName, defaultCpuSet or checksum is missing');
  if (
    json['podEntries'] !== undefined &&
    Object.keys(jsonObject(json['podEntries'], 'podEntries')).length > 0
  )
    throw new Error('it has assignments of whole pods, which are not known here');
  const checkpoint = { policyName, defaultCpuSet, entries: readEntries(json['entries'] ?? {}) };
  // Files of old had none.
  if (checksum !== 0 && !checksumsOf(checkpoint).includes(checksum))
    throw new Error('its checksum does not match');
  return { policyName, state: stateOf(checkpoint) };
}

function stateOf({ defaultCpuSet, entries }: Checkpoint): CpuState {
  return {
    defaultCpuSet: parseCpuSet(defaultCpuSet),
    assignments: new Map(
      [...entries].map(([uid, own]) => [
        podUid(uid),
        new Map([...own].map(([name, cpus]) => [name, parseCpuSet(cpus)])),
      ]),
    ),
  };
}

function checksumsOf(checkpoint: Checkpoint): readonly number[] {
  return [
    ...typeNames.map((name) => checksumOf(checkpoint, name)),
    checksumOf(checkpoint, 'CPUManagerCheckpoint', [['PodEntries', 'state.PodCPUAssignments', 'map[]']]),
  ];
}

function checksumOf(
  { policyName, defaultCpuSet, entries }: Checkpoint,
  typeName: string,
  more: readonly GoField[] = [],
): number {
  return goChecksum(`state.${typeName}`, [
    ['PolicyName', 'string', policyName],
    ['DefaultCPUSet', 'string', defaultCpuSet],
    ['Entries', 'map[string]map[string]string', goMap(entries, (own) => goMap(own, (cpus) => cpus))],
    ...more,
    ['Checksum', 'checksum.Checksum', '0'],
  ]);
}

function readEntries(value: unknown): Entries {
  return new Map(
    Object.entries(jsonObject(value, 'entries')).map(([uid, own]) => [
      uid,
      new Map(Object.entries(jsonObject(own, 'an entry')).map(([name, cpus]) => [name, `${cpus}`])),
    ]),
  );
}
