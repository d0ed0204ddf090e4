import type { SampledFamily } from '../../lib/index.ts';
import type { StoreFigures } from './file-store.ts';

/** What dashboards of API servers ask a store for, and what else there is to know of this one. */
export function storeMetrics(figures: StoreFigures): readonly SampledFamily[] {
  const { fileBytes, walBytes } = figures;
  return [
    {
      name: 'apiserver_storage_size_bytes',
      type: 'gauge',
      help: 'Bytes the store has on its disk.',
      samples: [{ labels: { storage_cluster_id: 'local' }, value: fileBytes + walBytes }],
    },
    one('gauge', 'kubeling_store_objects', 'Objects in the store.', figures.objects),
    one('gauge', 'kubeling_store_file_bytes', 'Bytes of its file.', fileBytes),
    one('gauge', 'kubeling_store_ahead_bytes', 'Bytes of what it wrote ahead of its file.', walBytes),
    one('gauge', 'kubeling_store_changes', 'Changes it remembers for watchers.', figures.logRows),
    one('gauge', 'kubeling_store_change_bytes', 'Bytes of these changes.', figures.logBytes),
    one('gauge', 'kubeling_store_waiting_changes', 'Changes not written yet.', figures.waiting),
    one('counter', 'kubeling_store_commits_total', 'Transactions since the start.', figures.commits),
    one('counter', 'kubeling_store_failed_commits_total', 'Those that failed.', figures.failedCommits),
    one('counter', 'kubeling_store_forgotten_changes_total', 'Changes forgotten.', figures.compacted),
  ];
}

function one(type: 'gauge' | 'counter', name: string, help: string, value: number): SampledFamily {
  return { name, type, help, samples: [{ value }] };
}
