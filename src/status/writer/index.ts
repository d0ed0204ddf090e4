export { type StatusWriterObserver, statusWriterMetrics } from './metrics.ts';
export { StatusWriter, type StatusWriterDeps } from './status-writer.ts';
