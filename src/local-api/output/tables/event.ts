import type { JsonObject } from '../../../api/index.ts';
import type { StoredObject } from '../../api/index.ts';
import { ageOf, type Cell, column, nameColumn, type Printer, wide } from './column.ts';

export const eventPrinter: Printer = {
  columns: [
    column('Last Seen', 'How long ago it happened last.'),
    column('Type', 'Normal, or Warning for what somebody should look at.'),
    column('Reason', 'Why it was told, in one word for programs.'),
    column('Object', 'The object it happened to.'),
    wide('Subobject', 'The part of the object, such as one container.'),
    wide('Source', 'Who told it, and on which node.'),
    column('Message', 'What happened, for people.'),
    wide('First Seen', 'How long ago it happened for the first time.'),
    wide('Count', 'How often it happened.'),
    { ...nameColumn, priority: 1 },
  ],
  cells: (object, nowMs) => eventCells(object, nowMs),
};

function eventCells(object: StoredObject, nowMs: number): readonly Cell[] {
  const { first, last, count } = occurrences(object, nowMs);
  const about = part(object, 'involvedObject', 'regarding');
  const kind = text(about['kind']).toLowerCase();
  const name = text(about['name']);
  return [
    last,
    text(object['type']),
    text(object['reason']),
    name === '' ? kind : `${kind}/${name}`,
    text(about['fieldPath']),
    sourceOf(object),
    (text(object['message']) || text(object['note'])).trim(),
    first,
    count,
    object.metadata.name,
  ];
}

function occurrences(object: StoredObject, nowMs: number) {
  const age = (time: unknown) => ageOf(text(time) || undefined, nowMs);
  const since = text(object['firstTimestamp']) || text(object['deprecatedFirstTimestamp']);
  const until = text(object['lastTimestamp']) || text(object['deprecatedLastTimestamp']);
  const first = age(since || object['eventTime']);
  const series = object['series'] as JsonObject | undefined;
  if (series !== undefined)
    return { first, last: age(series['lastObservedTime']), count: Number(series['count'] ?? 0) };
  // An event that happened once need not say so.
  const count = Number(object['count'] ?? object['deprecatedCount'] ?? 0) || 1;
  return { first, last: until === '' ? first : age(until), count };
}

function sourceOf(object: StoredObject): string {
  const source = part(object, 'source', 'deprecatedSource');
  const reporter = text(object['reportingComponent']) || text(object['reportingController']);
  const component = text(source['component']) || reporter;
  const instance = text(source['host']) || text(object['reportingInstance']);
  return instance === '' ? component : `${component}, ${instance}`;
}

/** The two groups that show events call the same things differently. */
function part(object: StoredObject, name: string, otherName: string): JsonObject {
  return (object[name] ?? object[otherName] ?? {}) as JsonObject;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
