import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { StoreDatabase } from './database.ts';
import type { StoreReply, StoreRequest, StoreResult } from './messages.ts';
import { asFailure, StoreFailure } from './schema.ts';

/**
 * The thread of the store. It has no time, no chance and no opinions: each request is done and answered before the
 * next one is looked at. It loads next to nothing, as all it loads is there twice.
 */
export function serveStore(port: MessagePort): void {
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
    return { id, answer: work() };
  } catch (error) {
    return { id, failure: asFailure(error) };
  }
}

// Loaded by anybody else, it is only code.
if (parentPort !== null && workerData === 'store') serveStore(parentPort);
