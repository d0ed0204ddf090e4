import { ask, chapter, create, hear, watch } from '../step.ts';
import { configMap, core } from './objects.ts';

const maps = `${core}/configmaps`;
const at = '<a.metadata.resourceVersion>';

/**
 * Requests with a resource version that is no longer in the watch history of the server. This
 * chapter runs last, because it drops the watch history of all resources.
 */
export const expiry = chapter('expiry', [
  create(maps, configMap('a'), { keep: 'a' }),
  create(maps, configMap('b')),
  ask(`GET ${maps}?limit=1`, { keep: 'page' }),
  create(maps, configMap('c')),
  { kind: 'forget', what: 'the history is dropped' },
  ask(`GET ${maps}?limit=1&continue=<page.metadata.continue>`, { keep: 'late', what: 'the next page' }),
  ask(`GET ${maps}?limit=5&continue=<late.metadata.continue>`, { what: 'the rest of an expired list' }),
  ask(`GET ${maps}?resourceVersion=${at}&resourceVersionMatch=Exact`),
  ask(`GET ${maps}?resourceVersion=${at}&limit=1`),
  ask(`GET ${maps}?resourceVersion=${at}&resourceVersionMatch=NotOlderThan`),
  watch('old', `${maps}?watch=1&resourceVersion=1`),
  hear('old', 'to-the-end', { what: 'a watch from an expired version' }),
  ask(`GET ${maps}?resourceVersion=999999999`),
  ask(`GET ${maps}/a?resourceVersion=999999999`),
  watch('future', `${maps}?watch=1&resourceVersion=999999999&timeoutSeconds=1`),
]);
