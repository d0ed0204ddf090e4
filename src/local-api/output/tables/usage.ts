import type { JsonObject } from '../../../api/index.ts';
import { addQuantities, formatQuantity, tryParseQuantity } from '../../../lib/index.ts';
import type { StoredObject } from '../../core/index.ts';
import { column, nameColumn, type Printer } from './column.ts';

const amounts = ['cpu', 'memory'];

/** What nodes and pods use; a pod's use is that of its containers. */
export const usagePrinter: Printer = {
  columns: [
    nameColumn,
    ...amounts.map((name) => ({ ...column(name, ''), format: 'quantity' as const })),
    { ...column('Window', ''), format: 'duration' },
  ],
  cells: (object) => [
    object.metadata.name,
    ...amounts.map((name) => totalOf(object, name)),
    String(object['window'] ?? ''),
  ],
};

function totalOf(object: StoredObject, amount: string): string {
  const parts = (object['containers'] ?? [object]) as readonly JsonObject[];
  const used = parts.flatMap(({ usage }) => tryParseQuantity(String((usage as JsonObject)?.[amount])) ?? []);
  return used.length === 0 ? '0' : formatQuantity(used.reduce(addQuantities));
}
