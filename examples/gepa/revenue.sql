SELECT customers.region AS region, COUNT(*) AS orders, SUM(orders.cents) AS cents
FROM orders
JOIN customers ON customers.customer_id = orders.customer_id
GROUP BY 1
ORDER BY 1
