//! The handle of a kernel.

use gloveport_audit::{Event, Text, record};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    cell::{Cell, CellReport},
    keeper::{self, Order, Request},
    options::KernelOptions,
    state::{KernelError, KernelState, Step},
};

/// Cells that wait; then the sender waits.
const MOST_CELLS: usize = 256;
/// Orders that wait; then the sender waits.
const MOST_ORDERS: usize = 16;

/// A kernel. Clones are the same kernel; it ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Kernel {
    state: watch::Receiver<KernelState>,
    cells: mpsc::Sender<Request>,
    orders: mpsc::Sender<Order>,
}

impl Kernel {
    /// Begins to start a kernel, and returns at once. Must be called within a tokio runtime.
    pub fn start(options: KernelOptions) -> Self {
        let (state_sender, state) = watch::channel(KernelState::Starting(Step::Finding));
        let (cells, cell_receiver) = mpsc::channel(MOST_CELLS);
        let (orders, order_receiver) = mpsc::channel(MOST_ORDERS);
        tokio::spawn(keeper::keep(options, state_sender, cell_receiver, order_receiver));
        Self { state, cells, orders }
    }

    /// How it stands, and every change of that.
    pub fn state(&self) -> watch::Receiver<KernelState> {
        self.state.clone()
    }

    /// Runs a cell after those that wait already. If the future is dropped the cell runs on; the next one waits for it.
    pub async fn execute(&self, cell: Cell) -> Result<CellReport, KernelError> {
        record(|| Event::Cell { text: Text::new(&cell.code) });
        let (answer, report) = oneshot::channel();
        self.cells.send(Request { cell, answer }).await.map_err(|_| KernelError::Closed)?;
        report.await.unwrap_or(Err(KernelError::Closed))
    }

    /// Interrupts the cell that runs; without one nothing happens.
    pub async fn interrupt(&self) -> Result<(), KernelError> {
        self.order(Order::Interrupt).await
    }

    /// Ends the kernel and starts another one. The cell that runs ends as if the kernel had died.
    pub async fn restart(&self) -> Result<(), KernelError> {
        self.order(Order::Restart).await
    }

    /// Ends the kernel, and returns when nothing that it started is left.
    pub async fn close(&self) {
        // A kernel that is closed already is what was asked for.
        let _closed_already = self.order(Order::Close).await;
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) -> Result<(), KernelError> {
        let (done, wait) = oneshot::channel();
        self.orders.send(order(done)).await.map_err(|_| KernelError::Closed)?;
        wait.await.map_err(|_| KernelError::Closed)
    }
}
