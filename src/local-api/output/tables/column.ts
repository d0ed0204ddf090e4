import type { JsonObject } from '../../../api/index.ts';
import type { StoredObject } from '../../core/index.ts';

export interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly format: '' | 'name' | 'quantity' | 'duration';
  readonly description: string;
  /** Shown always, or only in wide output; its cells are sent in any case. */
  readonly priority: 0 | 1;
}

export type Cell = string | number | boolean;

/** How the objects of one kind are shown in a table. */
export interface Printer {
  readonly columns: readonly Column[];
  readonly cells: (object: StoredObject, nowMs: number) => readonly Cell[];
  /** What a whole row is told to be, such as completed. */
  readonly conditions?: (object: StoredObject) => readonly JsonObject[] | undefined;
}

export function column(name: string, description: string, type: Column['type'] = 'string'): Column {
  return { name, type, format: '', description, priority: 0 };
}

export function wide(name: string, description: string, type: Column['type'] = 'string'): Column {
  return { ...column(name, description, type), priority: 1 };
}

export const nameColumn: Column = {
  ...column('Name', 'What the object is called; nothing else of its kind in its namespace has this name.'),
  format: 'name',
};

export const ageColumn: Column = column('Age', 'How long ago the object was made.');

/** For kinds that have nothing of their own to show. */
export const plainPrinter: Printer = {
  columns: [nameColumn, column('Created At', 'When the object was made.', 'date')],
  cells: ({ metadata }) => [metadata.name, metadata.creationTimestamp],
};

export function orNone(text: string | undefined): string {
  return text === undefined || text === '' ? '<none>' : text;
}
