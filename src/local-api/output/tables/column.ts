import type { JsonObject } from '../../../api/index.ts';
import type { StoredObject } from '../../api/index.ts';

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly format: '' | 'name' | 'quantity' | 'duration';
  readonly description: string;
  /**
   * The priority of the column: 0 if it is always shown, 1 for wide output. Clients receive all
   * cells.
   */
  readonly priority: 0 | 1;
}

export type Cell = string | number | boolean;

/** Prints objects of one kind as table rows. */
export interface Printer {
  readonly columns: readonly Column[];
  readonly cells: (object: StoredObject, nowMs: number) => readonly Cell[];
  /** The conditions of the table row, such as Completed. */
  readonly conditions?: (object: StoredObject) => readonly JsonObject[] | undefined;
}

export function column(name: string, description: string, type: Column['type'] = 'string'): Column {
  return { name, type, format: '', description, priority: 0 };
}

export function wide(name: string, description: string, type: Column['type'] = 'string'): Column {
  return { ...column(name, description, type), priority: 1 };
}

export const nameColumn: Column = {
  ...column('Name', 'The name of the object, unique among objects of its kind in its namespace.'),
  format: 'name',
};

export const ageColumn: Column = column('Age', 'The time since the creation of the object.');

/** The printer for kinds that have no own columns. */
export const plainPrinter: Printer = {
  columns: [nameColumn, column('Created At', 'The creation time of the object.', 'date')],
  cells: ({ metadata }) => [metadata.name, metadata.creationTimestamp],
};

export function orNone(text: string | undefined): string {
  return text === undefined || text === '' ? '<none>' : text;
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/** The units in which a duration is printed, by its length. */
const steps: readonly {
  readonly below: number;
  readonly unit: readonly [number, string];
  readonly rest?: readonly [number, string];
}[] = [
  { below: 2 * minute, unit: [1, 's'] },
  { below: 10 * minute, unit: [minute, 'm'], rest: [1, 's'] },
  { below: 3 * hour, unit: [minute, 'm'] },
  { below: 8 * hour, unit: [hour, 'h'], rest: [minute, 'm'] },
  { below: 2 * day, unit: [hour, 'h'] },
  { below: 8 * day, unit: [day, 'd'], rest: [hour, 'h'] },
  { below: 2 * year, unit: [day, 'd'] },
  { below: 8 * year, unit: [year, 'y'], rest: [day, 'd'] },
  { below: Number.POSITIVE_INFINITY, unit: [year, 'y'] },
];

/** Formats a duration for columns, in one or two units. Tolerates a clock skew of one second. */
export function shortDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  const step = steps.find(({ below }) => seconds < below);
  if (step === undefined) return '<invalid>';
  const [size, name] = step.unit;
  const whole = `${Math.floor(seconds / size)}${name}`;
  if (step.rest === undefined) return whole;
  const rest = Math.floor((seconds % size) / step.rest[0]);
  return rest === 0 ? whole : `${whole}${rest}${step.rest[1]}`;
}

/** The age for a timestamp, as printed in columns. */
export function ageOf(time: string | undefined | null, nowMs: number): string {
  const ms = time === undefined || time === null ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? '<unknown>' : shortDuration(nowMs - ms);
}
