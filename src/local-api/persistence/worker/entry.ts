import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { StoreDatabase } from './database.ts';
import type { StoreReply, StoreRequest, StoreResult } from './messages.ts';
import { asFailure, StoreFailure } from './schema.ts';

/**
 * The entry point of the worker thread for the store. It uses no clock and no randomness, and
 * executes requests serially. It has few imports, because each module in the thread is loaded a
 * second time.
 */
function serveStore(port: MessagePort): void {
  let database: StoreDatabase | undefined;
  const opened = (): StoreDatabase => {
    if (database === undefined) throw new StoreFailure('failed', 'it is not open');
    return database;
  };
  const carryOut = (request: StoreRequest): StoreResult => {
    switch (request.do) {
      case 'open':
        database = new StoreDatabase(request.path);
        return database.opened();
      case 'objects':
        return opened().objects(request.after);
      case 'log':
        return opened().log(request.before);
      case 'commit':
        return opened().commit(request);
      case 'compact':
        return opened().compact(request);
      case 'checkpoint':
        return opened().checkpoint();
      case 'tidy':
        return opened().vacuum();
      case 'close':
        return opened().close(request.revision, request.ts);
    }
  };
  port.on('message', ({ id, request }: { id: number; request: StoreRequest }) => {
    port.postMessage(replyTo(id, () => carryOut(request)));
  });
}

function replyTo(id: number, work: () => StoreResult): StoreReply {
  try {
    return { id, result: work() };
  } catch (error) {
    return { id, failure: asFailure(error) };
  }
}

// Does nothing when the module is imported outside of the worker thread.
if (parentPort !== null && workerData === 'store') serveStore(parentPort);
