import type { JsonObject } from '../../../api/index.ts';

type ParameterType = 'string' | 'integer' | 'boolean';

function inQuery(name: string, description: string, type: ParameterType = 'string'): JsonObject {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

function inPath(name: string, description: string): JsonObject {
  return { name, in: 'path', description, required: true, schema: { type: 'string', uniqueItems: true } };
}

export const nameParameter = inPath('name', 'What the object is called.');
export const namespaceParameter = inPath('namespace', 'The namespace the objects are in.');
export const prettyParameter = inQuery('pretty', 'Whether the answer is laid out for people: "true" if so.');

const dryRun = inQuery('dryRun', 'With "All" everything is done but the writing.');
const fieldManager = inQuery('fieldManager', 'Who is to be known as the one that set the fields.');
const fieldValidation = inQuery(
  'fieldValidation',
  'What becomes of fields that are unknown or given twice: Strict refuses them, Warn warns of them, Ignore drops them.',
);
const force = inQuery('force', 'Whether an apply takes over fields that others own.', 'boolean');
const limit = inQuery('limit', 'At most so many objects come in one answer.', 'integer');
const onward = inQuery('continue', 'Where an earlier answer said the list goes on.');
const fieldSelector = inQuery('fieldSelector', 'Only objects with these values in their fields.');
const labelSelector = inQuery('labelSelector', 'Only objects with such labels.');
const resourceVersion = inQuery('resourceVersion', 'As of which version, or from which version on.');
const match = inQuery('resourceVersionMatch', 'Whether that version is meant exactly, or as the oldest.');
const timeoutSeconds = inQuery('timeoutSeconds', 'After how long the answer ends.', 'integer');
const initial = inQuery('sendInitialEvents', 'Whether a watch begins with all there is.', 'boolean');
const bookmarks = inQuery('allowWatchBookmarks', 'Whether a watch may tell how far it is.', 'boolean');
const watch = inQuery('watch', 'Whether to go on with every change instead of ending.', 'boolean');
const grace = inQuery('gracePeriodSeconds', 'How long the object may take to go.', 'integer');
const propagationPolicy = inQuery('propagationPolicy', 'What becomes of the objects that it owns.');
const orphans = inQuery('orphanDependents', 'The older way to say what becomes of them.', 'boolean');

/** What each way to ask may have in its query. */
export const queryParameters = {
  list: [
    bookmarks,
    onward,
    fieldSelector,
    labelSelector,
    limit,
    resourceVersion,
    match,
    initial,
    timeoutSeconds,
    watch,
  ],
  write: [dryRun, fieldManager, fieldValidation],
  patch: [dryRun, fieldManager, fieldValidation, force],
  delete: [dryRun, grace, orphans, propagationPolicy],
  deleteMany: [
    onward,
    dryRun,
    fieldSelector,
    grace,
    labelSelector,
    limit,
    orphans,
    propagationPolicy,
    resourceVersion,
    match,
    timeoutSeconds,
  ],
} as const;
