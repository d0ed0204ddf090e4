export {
  StatusWriter,
  type StatusWriterDeps,
  type StatusWriterObserver,
  statusWriterMetrics,
} from './status-writer.ts';
